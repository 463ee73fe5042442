// What a session is made with, and what it counts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gossip/scheduler.hpp"
#include "net/session/lending.hpp"
#include "net/wire/buffer_pool.hpp"
#include "net/wire/frame.hpp"
#include "net/wire/hash_memo.hpp"

namespace gossamer::net {

/// Bytes that a hosted peer has sent to and received from peers of other processes.
struct SocketTraffic {
  std::uint64_t bytes_sent = 0, bytes_received = 0;  ///< at the sockets, everything included
  std::uint64_t data_bytes_sent = 0,
                data_bytes_received = 0;  ///< data and control frames, with their headers, as if
                                          ///< no chunk were lent
  std::uint64_t lent_bytes_sent = 0, lent_bytes_received = 0;  ///< values of lent chunks
};

struct SessionOptions {
  FrameParties incoming;            ///< what incoming headers must name; `to` is the peer here
  std::string name;                 ///< of the other end, for messages: "peer 5 (127.0.0.1:40113)"
  std::uint64_t id = 0;             ///< by which both ends know the session
  int window = 2;                   ///< chunks that are buffered
  gossip::Time failure_timeout{0};  ///< FailureDetector
  gossip::Time heartbeat{0};        ///< longest time without a write
  bool hold_data = false;           ///< Session::hold_data(), at first
  bool counts_rounds = true;        ///< messages say in which round the peer was lost
  HashMemo* hashes = nullptr;       ///< shared by the sessions of a process
  BufferMemory chunk_memory = BufferMemory::ordinary();
  /// What the ends of this session read in each other's memory; null: nothing. Of this session
  /// alone.
  std::shared_ptr<Lending> lending = nullptr;
  /// The connection broke, or nothing comes over it: attach() another one, `pause` from now, or
  /// call give_up(). Called from the scheduler's loop.
  std::function<void(gossip::Time pause)> reconnect = [](gossip::Time) {};
  /// Lines for people.
  std::function<void(const std::string&)> message = [](const std::string&) {};

  int local() const { return incoming.to; }
  int remote() const { return incoming.from; }
};

}  // namespace gossamer::net
