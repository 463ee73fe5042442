// What `gossamer launch` starts on which machine.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/launch/host_file.hpp"

namespace gossamer::peer {

struct LaunchRequest {
  std::vector<LaunchHost> hosts;
  int nodes = 0;                       ///< peers and servers of the network
  int workers = 1;                     ///< of a peer: parts of a cut model
  std::vector<std::string> ssh;        ///< the program, and its options
  std::string directory;               ///< in which processes run; it is the same on all machines
  std::string program;                 ///< the path of gossamer on every machine
  std::vector<std::string> arguments;  ///< of the command `peer`, but --quiet
  bool quiet = false;                  ///< no progress; otherwise the first process prints it
  /// Processes get addresses: slot s of a host listens on port + s, or, if it is a worker, on port
  /// + 2s and the port after. 0: the configuration says how they find each other.
  int port = 0;
  /// Where they listen on these ports; empty: on every interface, of IPv6 if the host's address is.
  std::string listen;
};

struct PlannedProcess {
  std::string ids;   ///< "0-3": the peers and servers that it hosts; "2.1": a worker
  std::string host;  ///< as in the host file
  std::vector<std::string> command;  ///< program and arguments, to be run on this machine
};

/// One process for each slot, in order: a worker each if there are as many slots as workers of a
/// cut model. Errors (invalid): more processes than peers and servers, and not as many as workers;
/// a port beyond 65,535.
///
/// A process runs under a shell on its machine. A line on the shell's standard input sends it
/// SIGTERM; the end of the input does nothing, so a network does not end with a launcher that is
/// killed, or with its machine. The process learns its rank from the environment, as under
/// other launchers (peer/setup/launchers.hpp).
Result<std::vector<PlannedProcess>> plan_launch(const LaunchRequest& request);

/// `word` as one word of a POSIX shell, whatever it contains.
std::string shell_quoted(const std::string& word);

}  // namespace gossamer::peer
