// One request to a process, over a connection of its own: a peer waits there for the call of
// another peer, or calls one that waits there (net/wire/relay_request.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/startup/connection.hpp"
#include "net/startup/handshake_stream.hpp"
#include "net/tls/authenticator.hpp"
#include "net/wire/relay_request.hpp"

namespace gossamer::net {

struct RelayCallOptions {
  Address address;                         ///< of the process
  int peer = 0;                            ///< that it hosts, whose key it proves
  Authenticator* authenticator = nullptr;  ///< null: connections are not encrypted
  RelayRequest request;
  gossip::Time deadline{0};  ///< to connect, and again for the answer to a call
  gossip::Time patience{0};  ///< for the answer to a peer that waits
  /// One of the two is called once, in the end, and may destroy the call. A connection to `peer`
  /// itself is reversed, and has its key; any other is relayed, and the peer at its other end has
  /// not proved one.
  std::function<void(Connection)> on_connected;
  /// `reached`: a process listens at the address.
  std::function<void(bool reached)> on_failure;
};

/// Thread: the scheduler's. Its destruction ends the call.
class RelayCall {
 public:
  RelayCall(RealScheduler& scheduler, RelayCallOptions options);
  ~RelayCall();
  RelayCall(const RelayCall&) = delete;
  RelayCall& operator=(const RelayCall&) = delete;

  int peer() const { return options_.peer; }

 private:
  void send(std::unique_ptr<Socket> socket);
  void on_answer(std::span<const std::byte> bytes);
  void fail();

  RealScheduler& scheduler_;
  RelayCallOptions options_;
  std::unique_ptr<Attempt> attempt_;
  std::shared_ptr<HandshakeStream> stream_;
  bool reached_ = false;
  std::shared_ptr<ShownKey> shown_ = std::make_shared<ShownKey>();
  gossip::Scheduler::TimerId timer_;
};

}  // namespace gossamer::net
