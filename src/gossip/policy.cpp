#include "gossip/policy.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace gossamer::gossip {
namespace {

/// Whether a row beside x has a sum over the peers that mixing conserves.
bool conserves_sums(const std::vector<RowSpec>& rows) {
  return std::ranges::any_of(rows, &RowSpec::mixed) &&
         std::any_of(rows.begin() + 1, rows.end(),
                     [](const RowSpec& row) { return row.conserved_sum; });
}

}  // namespace

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"sync", "deadline", "stale", "async"};
  return names;
}

Policy policy_named(const std::string& name) {
  const auto found = std::ranges::find(policy_names(), name);
  GOSSAMER_CHECK(found != policy_names().end(), "there is no policy of this name");
  return static_cast<Policy>(found - policy_names().begin());
}

std::optional<PolicyConflict> policy_conflict(Policy policy, const Algorithm& algorithm,
                                              const topology::MixingSchedule& schedule) {
  if (policy == Policy::sync) return std::nullopt;
  const AlgorithmRequirements needs = algorithm.requirements();
  if (!needs.mixing_matrix) return PolicyConflict::no_mixing;
  if (policy != Policy::deadline && conserves_sums(algorithm.rows(schedule)))
    return PolicyConflict::conserved_sums;
  if (policy == Policy::deadline && needs.fixed_matrix) return PolicyConflict::fixed_matrix;
  if (needs.synchronous) return PolicyConflict::synchronous;
  return std::nullopt;
}

}  // namespace gossamer::gossip
