// The listening side of the hello: who calls, from which run, and whether we want that. Strangers
// that say nothing or nonsense cost a bounded number of connections for a bounded time, and one
// line.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "net/startup/handshake_stream.hpp"
#include "net/wire/hello.hpp"

namespace gossamer::net {

/// Thread: the scheduler's. Listens from open() to its end.
class Acceptor {
 public:
  struct Plan {
    Identity identity;
    gossip::Time deadline{0};  ///< for a caller to say its hello
    std::chrono::milliseconds failure_timeout{0};
    std::function<bool()> running;  ///< Hello::running, asked for each answer
    /// Whether the caller may talk to the peer it asks for; accepted, resumed, or why not.
    std::function<HandshakeResult(const Hello& hello)> admit;
    std::function<void(std::unique_ptr<Socket>, const Hello& hello, HandshakeResult verdict)>
        admitted;
    /// Known peer or not, it was refused.
    std::function<void(const Hello& hello, HandshakeResult verdict, const std::string& clause)>
        refused;
    std::function<void(const std::string&)> message;
  };

  Acceptor(RealScheduler& scheduler, Plan plan) : scheduler_(scheduler), plan_(std::move(plan)) {}
  ~Acceptor();

  Status open(const Address& address);
  Address address() const { return listener_->address(); }

 private:
  static constexpr std::size_t kMaxPendingConnections =
      64;                                 // connections without a hello at a time
  static constexpr int kMaxReports = 20;  // lines about strangers in a run

  struct PendingConnection {
    std::shared_ptr<HandshakeStream> talk;
    bool answered = false;  ///< refused: only its hanging up is waited for
  };
  using PendingConnections = std::list<PendingConnection>;
  void on_accept(std::unique_ptr<Socket> socket);
  void judge(PendingConnections::iterator stranger, std::span<const std::byte> bytes);
  void answer(PendingConnections::iterator stranger, const Hello& hello, HandshakeResult verdict);
  void reject(PendingConnections::iterator stranger, const std::string& why);
  void report(const std::string& line);

  RealScheduler& scheduler_;
  Plan plan_;
  PendingConnections pending_;
  int reports_ = 0;
  std::unique_ptr<Listener> listener_;
};

}  // namespace gossamer::net
