// The file of `gossamer launch` that lists the machines of a network, one a line:
//
//   node1
//   alice@node2 slots=2                # two processes
//   node3 slots=4 address=10.0.0.7     # ssh knows it as node3, the other peers as 10.0.0.7
//
// '#' begins a comment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

struct LaunchHost {
  std::string login;    ///< as ssh takes it: [user@]name
  std::string address;  ///< under which the other peers reach the machine
  int slots = 1;        ///< processes, 1 to 65,535

  /// Processes are started without ssh, and no other machine reaches them.
  bool is_local() const { return login == "localhost"; }
  /// Only the machine itself reaches the address.
  bool is_loopback() const;
  bool operator==(const LaunchHost&) const = default;
};

/// Hosts in the order of the file; a host may come again. An address may be an IPv6 number. Errors
/// (invalid) name the line: a name with other characters than letters, digits and . - _ or with a
/// leading '-', which ssh would take for an option; an unknown or repeated word; no host; an
/// address of this machine alone beside others, which do not reach it. `origin` names the file.
Result<std::vector<LaunchHost>> parse_hosts(std::string_view text, const std::string& origin);
/// The same of a file. Errors (data): it cannot be read, or is larger than 1 MiB.
Result<std::vector<LaunchHost>> read_hosts(const std::filesystem::path& path);

}  // namespace gossamer::peer
