// Calls one peer until it takes us: look up, connect, hello, and again, with growing pauses.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/startup/handshake_stream.hpp"
#include "net/wire/hello.hpp"

namespace gossamer::net {

/// Thread: the scheduler's. Its end gives up the call.
class Connector {
 public:
  static constexpr gossip::Time kFirstPause =
      std::chrono::milliseconds(50);  ///< between two tries; doubles
  static constexpr gossip::Time kLongestPause = std::chrono::seconds(1);

  struct Plan {
    Hello hello;                    ///< what we say; `to` is who is called
    std::function<bool()> running;  ///< Hello::running, asked at each try
    std::function<Result<Address>()> find;
    bool moving = false;  ///< what `find` gives may be of the past: that somebody else lives there
                          ///< is no refusal
    gossip::Time deadline{0};  ///< of one try
    gossip::Time pause{0};     ///< before the first
    /// They accepted. May let the caller go.
    std::function<void(std::unique_ptr<Socket>, const Hello& answer)> connected;
    /// They are there and will not have us: a whole sentence. True to try again all the same; else
    /// it may let the caller go.
    std::function<bool(Error)> refused;
    /// If given: nobody listens there, or it is not known where that is, and this is called in
    /// place of another try. May let the caller go.
    std::function<void()> absent;
  };

  Connector(RealScheduler& scheduler, Plan plan);
  ~Connector();

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
  void give_up();
  void refuse(const std::string& clause);

  RealScheduler& scheduler_;
  Plan plan_;
  gossip::Time began_;
  gossip::Time pause_;
  int tries_ = 0;
  std::string address_, why_;
  gossip::Scheduler::TimerId timer_;
  std::unique_ptr<Attempt> attempt_;
  std::shared_ptr<HandshakeStream> stream_;
};

}  // namespace gossamer::net
