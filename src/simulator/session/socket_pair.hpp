// The two sockets of a connection in virtual time, byte by byte: what is written at one end arrives
// at the other a while later, in pieces of any size, until the connection breaks, at one end
// perhaps earlier than at the other. TCP's guarantees hold: bytes arrive in order, once, and, but
// for corrupt(), unchanged.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/philox.hpp"
#include "gossip/scheduler.hpp"
#include "net/io/socket.hpp"
#include "simulator/names.hpp"

namespace gossamer::simulator {

struct SocketPairOptions {
  Time latency{0};
  /// The most bytes in flight in each direction; further ones wait at the writer.
  std::size_t room = 1 << 16;
};

/// Ends are 0 and 1. Thread: the scheduler's.
class SocketPair : public std::enable_shared_from_this<SocketPair> {
 public:
  /// `scheduler` and `random` outlive it.
  SocketPair(Scheduler& scheduler, RandomStream& random, const SocketPairOptions& options)
      : scheduler_(scheduler), random_(random), options_(options) {}

  /// Once for each end. The pair lives as long as its sockets.
  std::unique_ptr<net::Socket> socket(int end);

  /// After this time, end `end` detects a reset. A random part of what is in flight to it, or
  /// unread there, is lost.
  void reset(int end, Time after);
  /// Nothing arrives at `end` any more, or what waited does.
  void hold_back(int end, bool held_back);
  /// One byte of what arrives next at `end` is changed.
  void corrupt(int end) { ends_[at(end)].corrupted = true; }

 private:
  class End;
  struct Packet {
    std::vector<std::byte> bytes;
    std::size_t read = 0;
    Time arrives{0};
  };
  /// The operations of one end, and what is in flight to it.
  struct Side {
    net::SocketUser* user = nullptr;
    std::vector<net::Area> into, from;  ///< of the read and the write in progress
    bool reads = false, writes = false;
    bool closed = false, held_back = false, corrupted = false;
    bool cut = false;  ///< what is sent there is lost
    std::error_code broken;
    std::deque<Packet> incoming;
    std::size_t incoming_bytes = 0;
    Time last_arrival{0};
    std::optional<Time> ends;  ///< from then on nothing more arrives
  };

  static std::size_t at(int end) { return static_cast<std::size_t>(end); }
  void schedule(Time after, void (SocketPair::*what)(int), int end);
  void read_some(int end);
  void write_some(int end);
  void finish(int end);
  void close(int end);
  void complete_read(int end, const net::Transfer& transfer);
  void complete_write(int end, const net::Transfer& transfer);
  Time draw_delay(Time most);

  Scheduler& scheduler_;
  RandomStream& random_;
  SocketPairOptions options_;
  std::array<Side, 2> ends_;
};

}  // namespace gossamer::simulator
