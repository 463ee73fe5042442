#include "peer/probe/probe_algorithm.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::peer {

std::vector<gossip::RowSpec> ProbeAlgorithm::rows(const topology::MixingSchedule&) const {
  std::vector<gossip::RowSpec> rows(3);
  rows[kSourceRow].name = "source";
  rows[kSinkRow].name = "sink";
  rows[kNumberRow].name = "number";
  for (gossip::RowSpec& row : rows) row.survives = false;
  return rows;
}

gossip::AlgorithmRequirements ProbeAlgorithm::requirements() const {
  gossip::AlgorithmRequirements needs;
  needs.mixing_matrix = false;
  needs.trainer = false;
  return needs;
}

gossip::task<void> ProbeAlgorithm::round(gossip::Node& node, gossip::Round) const {
  if (!std::ranges::binary_search(plan.processes, node.id())) co_return;
  Prober prober(scheduler_, node, plan);
  std::vector<ProcessMeasurement> all = co_await prober.run(steps);
  if (!all.empty()) on_result(std::move(all));
}

std::vector<int> ProbeAlgorithm::partners(int i, const topology::MixingSchedule& schedule) const {
  std::vector<int> others;
  for (int j = 0; j < schedule.peers(); ++j)
    if (j != i) others.push_back(j);
  return others;
}

}  // namespace gossamer::peer
