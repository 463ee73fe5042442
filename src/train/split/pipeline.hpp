// The order in which the workers of a replica pass microbatches through their parts: one forward,
// one backward (1F1B; Narayanan et al. 2019, "PipeDream", with a flush at the end of each batch as
// in Fan et al. 2021, "DAPPLE"). Parts are numbered 0 … parts − 1, and microbatches ascend.
#pragma once

#include <vector>

#include "train/split/split_model.hpp"

namespace gossamer::train {

struct PipelineStep {
  int part = 0;
  bool is_backward = false;
  int microbatch = 0;
  bool operator==(const PipelineStep&) const = default;
};

/// Microbatches that part `part` has between forward and backward, at most: min(microbatches,
/// parts − part). Microbatch m lies in place m mod that number.
int in_flight(int part, int parts, int microbatches);

/// What one worker does, in order: in_flight() forward passes, then backward and forward passes in
/// turn, then the backward passes that are left. Backward passes ascend.
std::vector<PipelineStep> worker_order(int part, int parts, int microbatches);

/// The steps of all workers in an order in which one thread can take them: each worker's as in
/// worker_order(), each forward pass after those of the parts before it, and each backward pass
/// after those of the parts behind it.
std::vector<PipelineStep> pipeline_order(int parts, int microbatches);

/// The durations of a batch's passes and messages.
struct PipelineCosts {
  std::vector<double> forward, backward;  ///< seconds of each part for the whole batch
  struct Message {
    int from = 0, to = 0;  ///< parts
    double bytes = 0;      ///< of the whole batch
  };
  /// One to each part that takes outputs, and one back with their gradients, if they have any.
  std::vector<Message> messages;
  double bytes_sent(int part) const;  ///< for the whole batch
  double latency = 0;                 ///< seconds, of each message
  /// Limits in bytes per second, 0: none: of each pair of workers and direction, and of all that a
  /// worker sends, and receives.
  double link = 0, uplink = 0, downlink = 0;
};

struct PipelineTime {
  double seconds = 0;  ///< of a batch: until the last worker is done
  double idle = 0;     ///< the part of the workers' time in which they do not compute
};

/// The time of one batch in `microbatches` equal microbatches. A worker takes its next step when
/// its messages have arrived, and a pass does not wait for what it sends. Messages follow each
/// other on the link, the uplink and the downlink that they use, at the speed of the slowest of
/// these.
PipelineTime pipeline_time(const PipelineCosts& costs, int microbatches);

/// The idle part with equal parts and messages that take no time: (parts − 1) / (microbatches +
/// parts − 1) (Huang et al. 2019, §2.3).
constexpr double pipeline_bubble(int parts, int microbatches) {
  return static_cast<double>(parts - 1) / static_cast<double>(microbatches + parts - 1);
}

/// The costs of a cut model whose whole step, on one worker, takes `seconds`; forward and backward
/// passes share it as their floating-point operations. Values of `value_bytes` travel.
PipelineCosts pipeline_costs(const SplitModel& model, double seconds, int batch,
                             std::size_t value_bytes);

}  // namespace gossamer::train
