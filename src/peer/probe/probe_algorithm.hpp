// The measurements of a network (prober.hpp) as an algorithm of one round. It is in no catalog: the
// engine of gossip/engine/ drives it, in a network or in virtual time.
#pragma once

#include <functional>
#include <vector>

#include "gossip/algorithm.hpp"
#include "peer/probe/prober.hpp"

namespace gossamer::peer {

class ProbeAlgorithm final : public gossip::Algorithm {
 public:
  /// The scheduler outlives this object.
  explicit ProbeAlgorithm(const gossip::Scheduler& scheduler) : scheduler_(scheduler) {}

  /// Before the first round.
  ProbePlan plan;
  /// Of the process's own peers.
  StepEstimate steps;
  /// Called at process 0, with the measurements of all processes.
  std::function<void(std::vector<ProcessMeasurement>)> on_result =
      [](const std::vector<ProcessMeasurement>&) {};

  std::vector<gossip::RowSpec> rows(const topology::MixingSchedule& schedule) const override;
  gossip::AlgorithmRequirements requirements() const override;
  int steps_per_round() const override { return 0; }
  /// A node that is not the lowest of its process does nothing.
  gossip::task<void> round(gossip::Node& node, gossip::Round t) const override;
  /// All other nodes.
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override;

 private:
  const gossip::Scheduler& scheduler_;
};

}  // namespace gossamer::peer
