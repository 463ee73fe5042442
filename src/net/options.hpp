// The [net] section of a configuration: each machine's own.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "net/address.hpp"

namespace gossamer::net {

struct NetOptions {
  std::vector<std::string>
      peers;                  ///< one address per peer, in order; peers of one process share theirs
  std::string listen;         ///< instead of the hosted peers' address
  std::string rendezvous;     ///< a folder that all processes see, instead of addresses
  double join_timeout = 120;  ///< seconds: time to start all machines by hand
  double failure_timeout = 2;        ///< seconds: four heartbeats
  std::string on_loss = "continue";  ///< continue | stop: what the others do when a peer is lost
  bool insecure = false;             ///< links are not encrypted yet
  int chunk_kib =
      1024;        ///< large enough for few system calls, small enough to mix while it streams
  int window = 2;  ///< one chunk is read while another is mixed
};

/// Their declaration, for configuration files, --set and `gossamer list`.
const ParameterSet<NetOptions>& net_parameters();

inline std::chrono::nanoseconds seconds(double count) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(count));
}

/// Where the process that hosts `hosted` listens.
Result<Address> listen_address(const NetOptions& options, const std::vector<int>& hosted);

/// What the declaration cannot check: addresses, their number, that a listener that others can
/// reach was asked for. `peers` is the network's size; `hosted`, ascending, are this process's
/// peers.
Status validate(const NetOptions& options, int peers, const std::vector<int>& hosted);

}  // namespace gossamer::net
