// A connection in virtual time, as bytes see it: what is written at one end comes at the other a
// while later, in parts of any size, until the connection breaks, for one end perhaps earlier than
// for the other. What TCP promises it keeps: in order, once, and, but for damage(), unchanged.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/philox.hpp"
#include "gossip/scheduler.hpp"
#include "net/socket.hpp"

namespace gossamer::net::sim {

struct LineOptions {
  gossip::Time latency{0};
  std::size_t room =
      1 << 16;  ///< bytes that are under way in each direction at most; more wait at the writer
};

/// Ends are 0 and 1. Thread: the scheduler's.
class Line : public std::enable_shared_from_this<Line> {
 public:
  /// `scheduler` and `chance` outlive it.
  Line(gossip::Scheduler& scheduler, RandomStream& chance, const LineOptions& options)
      : scheduler_(scheduler), chance_(chance), options_(options) {}

  /// Once for each end. The line lives as long as its sockets.
  std::unique_ptr<Socket> socket(int end);

  /// After so long, end `end` finds the connection reset; of what is on the way there, and of what
  /// it has not read, a part is lost.
  void reset(int end, gossip::Time after);
  /// Nothing comes at `end` any more, or what has waited does.
  void hold(int end, bool held);
  /// One byte that comes at `end` next is another one.
  void damage(int end) { ends_[at(end)].damaged = true; }

 private:
  class End;
  struct Packet {
    std::vector<std::byte> bytes;
    std::size_t read = 0;
    gossip::Time arrives{0};
  };
  /// What one end does, and what is on the way to it.
  struct Side {
    SocketUser* user = nullptr;
    std::vector<Area> into, from;  ///< of the read and the write under way
    bool reads = false, writes = false;
    bool closed = false, held = false, damaged = false;
    bool cut = false;  ///< what is sent there from now on is lost
    std::error_code broken;
    std::deque<Packet> coming;
    std::size_t coming_bytes = 0;
    gossip::Time last_arrival{0};
    std::optional<gossip::Time> ends;  ///< from then on nothing more comes
  };

  static std::size_t at(int end) { return static_cast<std::size_t>(end); }
  void later(gossip::Time after, void (Line::*what)(int), int end);
  void read_some(int end);
  void write_some(int end);
  void finish(int end);
  void close(int end);
  void complete_read(int end, const Transfer& transfer);
  void complete_write(int end, const Transfer& transfer);
  gossip::Time a_while(gossip::Time most);

  gossip::Scheduler& scheduler_;
  RandomStream& chance_;
  LineOptions options_;
  std::array<Side, 2> ends_;
};

}  // namespace gossamer::net::sim
