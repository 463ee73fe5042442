// A connection between two peers of different processes, as TCP makes it: in each direction, what
// is sent comes once, in order and undamaged, or the connection is broken; each end finds out by
// itself, and nothing is delivered at an end that has. So the protocol never sees a frame lost,
// doubled or out of order; what it sees are delays of any length, and connections that end after
// any chunk, for one end earlier than for the other.
//
//   sender's queue (chunks lent) → on the way (copies, a bounded number) → receiver's buffers (a
//   window of them) → exchange
//
// The end with the lower id calls again when its connection is gone, and the other end answers when
// it knows that too. There is a new pair of wires then; to each end the link is back when the first
// word of the other end comes over them.
//
// A process whose peers have done their last rounds says goodbye behind all that it has to say,
// hears no more, and ends when that has come. Whoever has heard a goodbye misses nobody.
//
// An end finds its connection broken when the other end's closing comes, which takes at most
// kResetTime where anything passes; when a frame is damaged; or when nothing has come for the
// silence although it reads: heartbeats come from every process that lives and is not held up.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "gossip/links/capacity.hpp"
#include "gossip/links/link.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::gossip::sim {

/// The longest from the end of one end to the other end's knowing, where the network passes it on.
inline constexpr Time kResetTime = std::chrono::milliseconds(100);
/// How often in a row a packet is lost at most, and how many ways there and back pass until the
/// last of them is sent again: one, then twice as many each time.
inline constexpr int kMostLosses = 3, kLongestResend = (1 << kMostLosses) - 1;

/// What lies between two peers, in one direction, whatever connection they have.
struct Path {
  Time delay{0};  ///< chunks that leave from now on come so much later than they would
  int stops = 0;  ///< nothing passes while there is one
};

/// One direction of a connection.
class Wire {
 public:
  Wire(World& world, const Path& path, int from, int to);
  ~Wire();

  void send(Chunk chunk);
  /// The first word of a new connection.
  void greet();
  /// The last one comes behind all that waits.
  void say_goodbye();
  /// It has come.
  bool parted() const { return said_goodbye_ && on_the_way_.empty(); }

  /// Takes from the sender's queue what has room on the way.
  void fill();
  /// Delivers what has come.
  void pump();

  /// The next frame that comes is damaged.
  void damage() { damaged_ = true; }
  /// The next row that is sent begins with a NaN, whatever codec it is in.
  void spoil() { spoils_ = true; }

  /// The sender's end is closed: what waited there is gone. With `told`, what is on the way is
  /// followed by the news, but for a part of it that the closing may take away.
  void close(bool told, bool cuts_off);
  /// The receiver reads no more.
  void shut();
  bool shut_down() const { return shut_; }

  /// Whether the receiver hears anything may have changed: where it does not, the silence begins.
  void hear();
  /// A receiver that was held up itself begins to listen anew: what they sent may lie unread.
  void listen();

 private:
  class Buffer;
  struct Travelling {
    ChunkHeader head;
    std::vector<float> values;
    Time arrives{0};
    bool closing = false, greeting = false, goodbye = false, spoiled = false;
    std::uint64_t bytes() const { return kFrameOverheadBytes + values.size() * sizeof(float); }
  };

  bool mute() const;
  bool reads() const;
  Buffer* free_buffer();
  void returned();
  void watch();
  void fill_soon();
  void say(bool Travelling::* word);
  Time leaves(std::uint64_t bytes);
  Time sent_again();

  World& world_;
  const Path& path_;
  int from_, to_;
  std::deque<Chunk> waiting_;  ///< the sender's
  std::uint64_t lent_ = 0;     ///< values of these
  bool closed_ = false;        ///< the sender's end
  std::deque<Travelling> on_the_way_;
  Capacity capacity_;
  Time last_arrival_{0};
  bool damaged_ = false, spoils_ = false, shut_ = false, fill_due_ = false, pump_due_ = false;
  bool goodbye_due_ = false, said_goodbye_ = false;
  std::vector<std::unique_ptr<Buffer>> buffers_;  ///< the receiver's
  bool mute_ = false;
  Time heard_{0};  ///< while mute: when the last byte came, or waiting for one began
};

class Connection {
 public:
  /// a < b. There from the start, between the peers' first lives.
  Connection(World& world, int a, int b);
  ~Connection();

  /// As it stands: another one after each opening.
  Wire& wire(int from) { return *wires_[index(from)]; }
  /// What peer `from` sends over, or drops while its end is down.
  Link& link(int from);
  std::array<int, 2> ends() const { return ends_; }

  /// On the way from a peer to the other one, nothing passes, or what waited does again. Several
  /// may stop it; all must let go.
  void stop(int from);
  void go(int from);
  /// Chunks come so much later.
  void add_delay(int from, Time more) { paths_[index(from)].delay += more; }

  /// Peer `end` finds the connection broken, and the other end will.
  void lost(int end, const std::string& why);
  /// The process of peer `end` has ended; `told`: its machine says so to the other end.
  void ended(int end, bool told);
  /// Peer `end` closes it in the middle of a frame.
  void broken_off(int end);
  /// The first word of the other end has come.
  void greeted(int end);
  /// The process of peer `end` was started again.
  void begun_again(int end);
  /// Peer `end` has nothing more to say, and wants to hear nothing more.
  void leave(int end);
  bool leaves(int end) const { return leaving_[index(end)]; }
  /// Nothing holds peer `end` here any more.
  bool may_go(int end) const;
  /// Its partner's goodbye has come to peer `end`.
  void parted(int end);

 private:
  class Gate;
  enum class State { up, opening, down };

  std::size_t index(int end) const { return end == ends_[0] ? 0 : 1; }
  int other(int end) const { return end == ends_[0] ? ends_[1] : ends_[0]; }
  State& state(int end) { return states_[index(end)]; }
  bool close(int end, bool told, bool cuts_off);
  void find_broken(int end, bool cuts_off, const std::string& why);
  void tell(int end, bool back);
  bool answers() const;
  void call_later();
  void call();
  void answer();

  World& world_;
  std::array<int, 2> ends_;
  std::array<int, 2> lives_;  ///< that the connection is between
  std::array<Path, 2> paths_;
  std::array<std::unique_ptr<Wire>, 2> wires_;
  std::vector<std::unique_ptr<Wire>> old_wires_;  ///< of which chunks may be lent, and events due
  std::array<std::unique_ptr<Gate>, 2> gates_;
  std::array<State, 2> states_{State::up, State::up};
  std::array<bool, 2> leaving_{}, parted_{};  ///< has said goodbye; has heard one
  int opening_ = 0;
  bool calling_ = false;
};

}  // namespace gossamer::gossip::sim
