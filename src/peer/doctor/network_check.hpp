// What `gossamer doctor CONFIG` checks before a network is started, or while it runs: everything
// that a process of it needs, from its configuration to the ports of the others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gossip/scheduler.hpp"
#include "peer/config/config.hpp"
#include "peer/setup/local_rank.hpp"

namespace gossamer::peer {

struct Finding {
  enum class State {
    ok,
    note,    ///< nothing is wrong yet: a peer that has not started, a check that could not be made
    problem  ///< the process would not start, or not find the others
  };
  State state = State::ok;
  std::string subject;                  ///< "memory", "peer 3"
  std::string text;                     ///< what was found and, unless it is ok, what to do
  ErrorKind kind = ErrorKind::invalid;  ///< of a problem: the exit code of `gossamer peer`
};

struct NetworkCheckRequest {
  std::string id_option;                            ///< as of find_worker() and given_ids()
  gossip::Time deadline = std::chrono::seconds(3);  ///< of a connection
};

/// The findings, in the order of what depends on what. A check whose condition is missing is left
/// out. Opens the port of this process for a moment, and connects to the others'.
std::vector<Finding> check_network(const Config& config, const NetworkCheckRequest& request,
                                   const Environment& environment);

}  // namespace gossamer::peer
