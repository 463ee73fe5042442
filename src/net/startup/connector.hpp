// The connecting side of the handshake: finds a peer's address, connects, sends a hello, and
// repeats that with growing pauses until the peer accepts. With keys, the hello is sent only to a
// process that has proved the key of the peer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/io/back_off.hpp"
#include "net/startup/connection.hpp"
#include "net/startup/handshake_stream.hpp"
#include "net/tls/authenticator.hpp"
#include "net/wire/hello.hpp"

namespace gossamer::net {

struct ConnectorOptions {
  Hello hello;                             ///< what to send; `to` is the peer to connect to
  std::string name;                        ///< what messages call it
  Authenticator* authenticator = nullptr;  ///< null: connections are not encrypted
  std::function<bool()> running;           ///< Hello::running, asked at each attempt
  std::function<Result<Address>()> find;   ///< where the peer listens; an error is retried
  bool address_may_be_stale = false;  ///< that another peer lives at the address is no rejection
  gossip::Time deadline{0};           ///< of one attempt
  gossip::Time pause{0};              ///< before the first
  /// The peer accepted. May destroy the connector.
  std::function<void(Connection, const Hello& answer)> on_connected;
  /// The peer is there and rejects this one; the error is a whole sentence. Returns true to try
  /// again all the same; else it may destroy the connector.
  std::function<bool(Error)> on_rejected;
  /// If given: no process listens at the address, or the address is unknown. Returns true to try
  /// again all the same; else it may destroy the connector.
  std::function<bool()> on_unreachable;
};

/// Thread: the scheduler's. Its destruction ends the attempt.
class Connector {
 public:
  Connector(RealScheduler& scheduler, ConnectorOptions options);
  ~Connector();

  /// Continues with a connection that has come another way: the hello is sent over it, and where
  /// the other end has not proved its key yet, after the two have. An attempt under way is
  /// abandoned. Returns false, and closes the connection, if is_busy(), or the pause before the
  /// first attempt is not over.
  bool take(Connection connection);
  /// A hello is on its way, over a connection that is new or from which bytes have come.
  bool is_busy() const;
  /// The peer has answered the latest hello.
  bool is_answered() const { return answered_; }
  /// The address of the last attempt; empty if there was none.
  const std::string& address() const { return address_; }
  /// Why the peer is not connected: "connection refused, 12 tries in 30 s".
  std::string failure() const;

 private:
  void attempt();
  void retry(std::string why);
  void begin_handshake(Connection connection);
  void on_end(const std::string& why);
  void read_answer();
  bool on_first_words(const HelloPrefix& prefix);
  void on_refusal(HandshakeResult result, const std::string& clause);
  void on_answer(const std::optional<Hello>& answer);
  void on_unreachable(const std::string& why);
  void on_rejection(const std::string& clause);

  RealScheduler& scheduler_;
  ConnectorOptions options_;
  gossip::Time began_;
  BackOff back_off_;
  int attempts_ = 0;
  std::string address_, failure_;
  gossip::Scheduler::TimerId timer_;
  std::unique_ptr<Attempt> attempt_;
  std::shared_ptr<HandshakeStream> stream_;
  std::shared_ptr<ShownKey> shown_;  ///< by the other end of the stream
  Route route_;                      ///< of the stream
  gossip::Time handshake_began_{0};
  gossip::Time patience_;  ///< with a stream from which nothing has come, if there is another one
  bool answered_ = false;
};

}  // namespace gossamer::net
