// The mix of a row with whole rows, by the run's rule. The mean mixes them with their weights in W.
// A DistanceRule takes the distances between the rows from the device, and gives the mix its
// weights; a rule that reads losses too (UBAR) has them measured on a batch of the peer's own
// samples, the one with the number of the round. On a GPU the host waits for the distances, once a
// mix: the weights are computed there. A RankRule is one operation of the device.
#pragma once

#include "gossip/mixing/mix_operation.hpp"
#include "gossip/process/process_context.hpp"
#include "gossip/row.hpp"
#include "gossip/rule.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class WholeRowMix {
 public:
  /// Both outlive the object.
  WholeRowMix(Messenger& messenger, const ProcessContext& process)
      : messenger_(messenger), process_(process), operations_(messenger, process) {}

  /// Mixes `row`, which is `channel`, and swaps its halves, also if there are no rows to mix with.
  /// `rows` are the neighbours' rows with their weights in W, and are held until the task is done.
  task<void> mix(Channel channel, MixedRow& row, WholeRows rows);

  /// Time spent so far, in seconds of the scheduler's clock; of a rule, with the wait for the
  /// batch.
  double seconds() const { return rule_seconds_ + operations_.seconds(); }

 private:
  task<void> rank(const RankRule& rule, std::span<const float> x, std::span<float> out,
                  const WholeRows& rows);
  task<void> weigh(const DistanceRule& rule, std::span<const float> x, WholeRows& rows);

  /// [m]: the losses of row 0, and of the rows with a weight, on the peer's batch number `round`.
  task<std::vector<double>> batch_losses(const std::vector<const float*>& rows,
                                         const std::vector<double>& weights, Round round,
                                         std::size_t length);

  const Messenger& messenger_;
  const ProcessContext& process_;
  MixOperations operations_;
  double rule_seconds_ = 0;
};

}  // namespace gossamer::gossip
