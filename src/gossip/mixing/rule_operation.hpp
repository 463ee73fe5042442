// The run's mixing rule, applied to whole rows. A DistanceRule takes the distances between the rows
// from the device, and gives the mix its weights. On a GPU the host waits for the distances, once a
// mix: the weights are computed there. A RankRule is one operation of the device.
#pragma once

#include <span>

#include "gossip/exchange/process_context.hpp"
#include "gossip/mixing/mix_operation.hpp"
#include "gossip/rule.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class RuleOperation {
 public:
  explicit RuleOperation(const ProcessContext& process) : process_(process) {}

  bool differs_from_mean() const { return process_.options.rule != nullptr; }
  /// Of rules other than the mean. `rows` are the neighbours' rows with their weights in W, and are
  /// held until the task is done. Either writes the mix to `out` and returns true, or gives `rows`
  /// the weights with which they are to be mixed, leaves out those of weight 0, and returns false.
  task<bool> apply(std::span<const float> x, std::span<float> out, WholeRows& rows);

  /// Time spent so far, in seconds of the scheduler's clock, with the wait for the batch.
  double seconds() const { return seconds_; }

 private:
  task<void> rank(const RankRule& rule, std::span<const float> x, std::span<float> out,
                  const WholeRows& rows);
  task<void> weigh(const DistanceRule& rule, std::span<const float> x, WholeRows& rows);

  const ProcessContext& process_;
  double seconds_ = 0;
};

}  // namespace gossamer::gossip
