// The policies of a mix, as far as they are known before a run: their names, and what each of them
// refuses. gossip/mixing/ has a class for each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gossip/algorithm.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

/// When a mix takes a neighbour's row: gossip/mixing/mixer.hpp says it of each.
enum class Policy { sync, deadline, stale, async };

/// The names that policies have in a configuration, in the order of Policy.
const std::vector<std::string>& policy_names();
/// The policy with this name, which is one of policy_names().
Policy policy_named(const std::string& name);

/// Why an algorithm cannot run under a policy.
enum class PolicyConflict {
  no_mixing,       ///< a policy applies to mixing, and the algorithm does not mix
  conserved_sums,  ///< late or missing rows would break its sums over the peers
  fixed_matrix,    ///< the policy changes W, and the algorithm needs the same W in every round
  synchronous,     ///< the algorithm needs all rows of one round
};

/// None where `algorithm` runs under `policy` on this schedule; of several, the first in the order
/// of the enum.
std::optional<PolicyConflict> policy_conflict(Policy policy, const Algorithm& algorithm,
                                              const topology::MixingSchedule& schedule);
/// Whether every W_t must be symmetric: both ends of an edge then leave out an exchange together.
inline bool needs_symmetric_matrix(Policy policy) { return policy == Policy::deadline; }
/// Whether every mix takes the rows of its round, and all of them. What theory predicts, lossy
/// codecs and attacks need that.
inline bool is_lockstep(Policy policy) { return policy == Policy::sync; }

}  // namespace gossamer::gossip
