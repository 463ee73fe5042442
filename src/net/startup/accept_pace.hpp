// How fast connections are accepted from an address. A handshake of TLS takes up to a millisecond
// before a stranger is known for one, so those that lead to nothing are few in a second.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "gossip/scheduler.hpp"

namespace gossamer::net {

/// Thread: the scheduler's.
class AcceptPace {
 public:
  /// Of a process with so many pairs, all of which may be of one machine. `encrypted`: a
  /// connection begins with a handshake of TLS.
  AcceptPace(std::size_t pairs, bool encrypted)
      : most_(kBurst + 2 * static_cast<double>(pairs)),
        per_second_((encrypted ? kEncryptedPerSecond : kPerSecond) +
                    2 * static_cast<double>(pairs)) {}

  /// A connection comes from a host. False: too many have come from there that led to nothing, and
  /// this one is not to be read yet.
  bool admit(const std::string& host, gossip::Time now);
  /// A connection that was admitted from a host is a member's, and does not count.
  void on_member(const std::string& host);

  static constexpr double kBurst = 64, kPerSecond = 50, kEncryptedPerSecond = 25;
  static constexpr std::size_t kMaxHosts = 1024;

 private:
  /// Admitted connections that led to nothing, less those that time has made good.
  struct Host {
    double count = 0;
    gossip::Time last{0};
  };

  double most_, per_second_;
  std::map<std::string, Host> hosts_;
};

}  // namespace gossamer::net
