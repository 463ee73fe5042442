// A connection between two peers of different processes, with TCP's guarantees: in each direction,
// what is sent arrives once, in order and undamaged, or the connection is lost. Each end detects a
// loss by itself, and nothing is delivered at an end that has. So the protocol never sees a frame
// lost, duplicated or reordered. It sees delays of any length, and connections that end after any
// chunk, at one end earlier than at the other.
//
// The end with the lower id redials when its connection is lost; the other end accepts once it
// knows of the loss too. There is a new pair of wires then, and for each end the link is restored
// when the first frame of the other end arrives on them.
//
// A process whose peers have done their last rounds sends a close frame behind all that it has
// sent, reads no more, and ends when that has arrived. A peer that has received it does not count
// the end as a loss.
//
// An end detects a loss when the other end's reset arrives, which takes at most kResetTime where
// anything passes; when a frame is damaged; or when nothing has arrived for the failure timeout
// although the end reads: every process that lives and is not paused sends heartbeats.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "simulator/world/wire.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::simulator {

class Connection {
 public:
  /// a < b. Connected from the start, between the peers' first incarnations.
  Connection(World& world, int a, int b);
  ~Connection();

  /// The current wire from a peer; a new one after each reconnection.
  Wire& wire(int from) { return *end_of(from).wire; }
  /// What peer `from` sends on; while its end is down, chunks are dropped.
  Link& link(int from);
  std::array<int, 2> ends() const { return {ends_[0].peer, ends_[1].peer}; }

  /// From one peer to the other nothing passes, or what waited passes again. Blocks are counted.
  void set_blocked(int from, bool blocked);
  /// Chunks arrive later by this time.
  void add_delay(int from, Time more) { end_of(from).path.delay += more; }

  /// Peer `end` detects that the connection is lost, and the other end will. `truncates`: in the
  /// middle of a frame.
  void lose(int end, const std::string& why, bool truncates = false);
  /// The process of peer `end` has ended. `resets`: its machine sends a reset to the other end.
  void process_ended(int end, bool resets);
  /// Peer `end` takes the link for lost. Recorded where the connection is not.
  void note_lost_link(int end) {
    if (!end_of(end).recorded_lost) record(end, false);
  }
  /// The first frame of the other end has arrived.
  void hello_received(int end);
  /// It is down from the start: an end of it joins.
  void begin_down();
  /// The end with the lower id dials again after a while, one attempt at a time.
  void redial_later();
  /// Peer `end` has done its rounds: it sends nothing more, and reads nothing more.
  void close(int end);
  bool closes(int end) const { return end_of(end).closes; }
  /// Nothing on this connection keeps the process of peer `end` from its exit.
  bool may_exit(int end) const;
  /// The close frame of its partner has arrived at peer `end`.
  void close_received(int end);
  /// After that: peer `end` needs the partner no more, which may start again.
  void part(int end);

 private:
  class Gate;
  enum class State { up, opening, down };

  /// What one peer has of the connection, and what it sends on.
  struct End {
    int peer = 0;
    int incarnation = 0;  ///< that the connection belongs to
    State state = State::up;
    bool recorded_lost = false;  ///< the last record of the link at this end
    bool closes = false;         ///< it has closed its end
    bool peer_closed = false;    ///< it has received the other end's close frame
    Path path;                   ///< to the other end
    std::unique_ptr<Wire> wire;
    std::unique_ptr<Gate> gate;
  };

  End& end_of(int peer) { return ends_[peer == ends_[0].peer ? 0 : 1]; }
  const End& end_of(int peer) const { return ends_[peer == ends_[0].peer ? 0 : 1]; }
  End& other(int peer) { return ends_[peer == ends_[0].peer ? 1 : 0]; }
  bool take_down(int end, bool resets, bool truncates);
  void record(int end, bool restored, bool parted = false);
  void dial();
  void accept();

  World& world_;
  std::array<End, 2> ends_;
  std::vector<std::unique_ptr<Wire>> old_wires_;  ///< chunks may be leased from them, events be due
  int number_ = 0;                                ///< of the current connection, from 0
  bool dialling_ = false;
};

}  // namespace gossamer::simulator
