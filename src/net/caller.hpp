// Calls one peer until it answers: look up, connect, hello, and again, with pauses from 50 ms to 1 s.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/hello.hpp"
#include "net/talk.hpp"

namespace gossamer::net {

/// Thread: the scheduler's. Its end gives up the call.
class Caller {
 public:
  struct Plan {
    Hello hello;  ///< what we say; `to` is who is called
    std::function<Result<Address>()> find;
    gossip::Time deadline{0};  ///< of one try
    /// They accepted. May let the caller go.
    std::function<void(std::unique_ptr<Socket>, const Hello& answer)> connected;
    /// They are there and will not have us: a whole sentence. May let the caller go.
    std::function<void(Error)> refused;
  };

  Caller(RealScheduler& scheduler, Plan plan);
  ~Caller();

  /// Where the peer was last called; empty if that is not known.
  const std::string& address() const { return address_; }
  /// Why it is not connected: "connection refused, 12 tries in 30 s".
  std::string trouble() const;

 private:
  void call();
  void retry(std::string why);
  void talk(std::unique_ptr<Socket> socket);
  void read_answer();
  void judge(std::span<const std::byte> bytes);
  void refuse(const std::string& clause);

  RealScheduler& scheduler_;
  Plan plan_;
  gossip::Time began_;
  gossip::Time pause_;
  int tries_ = 0;
  std::string address_, why_;
  gossip::Scheduler::TimerId timer_;
  std::unique_ptr<Attempt> attempt_;
  std::shared_ptr<Talk> talk_;
};

}  // namespace gossamer::net
