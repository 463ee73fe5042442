// The ids of the peers that a process hosts, from an option or from the environment of its
// launcher.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/config/config.hpp"
#include "peer/setup/local_rank.hpp"

namespace gossamer::peer {

/// The ids in `option`, of the form "3", "0,1" or "0-3"; if it is empty, those in GOSSAMER_ID; if
/// there are none either, those of the rank that a launcher sets (kLaunchers in launchers.hpp), as
/// in ids_of_rank(); a launcher that does not say how many processes there are: the node of that
/// number. Ascending; empty if nothing gives any. `origin`: name of the option in messages. Errors
/// (invalid): an id not of this form; more processes than nodes.
Result<std::vector<int>> given_ids(const std::string& option, const std::string& origin, int nodes,
                                   const Environment& environment);

/// Whether a process of the network may host these nodes. Errors (invalid): there is no such node;
/// several in an open run; the algorithm runs in one process; as of gossip::make_algorithm.
Status check_ids(const Config& config, const std::vector<int>& ids);

/// The place of a process among those that a launcher started.
struct LauncherRank {
  int rank = 0, size = 1;
  std::string variable;  ///< environment variable that gives the size
};

/// None where no launcher gives a rank, or it does not say how many processes there are. Error
/// (invalid): the rank is not one of them.
Result<std::optional<LauncherRank>> launcher_rank(const Environment& environment);

/// The error of a process whose id nothing gives.
Error no_id(const std::string& origin);

/// The nodes ⌊rn/p⌋ to ⌊(r+1)n/p⌋ − 1 of n = `nodes`, which the process of rank r of p = `size`
/// hosts. p is at most n.
std::vector<int> ids_of_rank(int rank, int size, int nodes);

/// The nodes of the run that `config` describes: its peers and the servers of its algorithm. Errors
/// as of gossip::make_algorithm.
Result<int> node_count(const Config& config);

}  // namespace gossamer::peer
