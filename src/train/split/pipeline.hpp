// The order in which the stages of a replica pass microbatches: one forward, one backward (1F1B;
// Narayanan et al. 2019, "PipeDream", with a flush at the end of each batch as in Fan et al. 2021,
// "DAPPLE"), or with more forward passes ahead (eager-1F1B; Zhuang et al. 2023, "On Optimizing the
// Communication of Model Parallelism"). Stages are numbered 0 … stages − 1, and microbatches
// ascend. The workers that share a stage take its steps together.
#pragma once

#include <vector>

#include "train/split/split_model.hpp"

namespace gossamer::train {

struct PipelineStep {
  int stage = 0;
  bool is_backward = false;
  int microbatch = 0;
  bool operator==(const PipelineStep&) const = default;
};

struct Pipeline {
  int stages = 1, microbatches = 1;
  bool is_eager = false;

  static Pipeline of(const SplitModel& model, int microbatches) {
    return {model.stages(), microbatches, model.is_eager()};
  }

  /// Microbatches that a stage has between forward and backward, at most: all, or, if fewer, stages
  /// − stage, and if eager 2 (stages − stage) − 1, so that one more is on its way between two
  /// stages while both compute. Microbatch m lies in place m mod that number.
  int in_flight(int stage) const;

  /// What the workers of one stage do, in order: in_flight() forward passes, then backward and
  /// forward passes in turn, then the backward passes that are left. Backward passes ascend.
  std::vector<PipelineStep> order_of(int stage) const;

  /// The steps of all stages in an order in which one thread can take them: each stage's as in
  /// order_of(), each forward pass after those of the stages before it, and each backward pass
  /// after those of the stages behind it.
  std::vector<PipelineStep> order() const;

  bool operator==(const Pipeline&) const = default;
};

/// The durations of a batch's passes and messages.
struct PipelineCosts {
  struct Segment {  ///< as of SplitModel
    int stage = 0, worker = 0;
    double forward = 0, backward = 0;  ///< seconds for the whole batch
    /// Of `backward`: what is done after its gradients are sent, and what is done after the begun
    /// gradient has come with which it goes on.
    double after_sending = 0, after_begun = 0;
  };
  std::vector<Segment> segments;
  struct Message {
    int from = 0, to = 0;  ///< segments
    double bytes = 0;      ///< of the whole batch
    enum class Kind { output, gradient, begun_gradient } kind = Kind::output;
  };
  std::vector<Message> messages;
  bool is_eager = false;  ///< Pipeline
  int stages() const;
  int workers() const;
  double bytes_sent(int worker) const;  ///< to other workers, for the whole batch
  double latency = 0;                   ///< seconds, of each message
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

/// The idle part of the time with equal stages that send when a pass is done, and messages that
/// take no time: (stages − 1) /
/// (microbatches + stages − 1) (Huang et al. 2019, §2.3).
constexpr double pipeline_bubble(int stages, int microbatches) {
  return static_cast<double>(stages - 1) / static_cast<double>(microbatches + stages - 1);
}

/// The costs of a cut model whose whole step, on one worker, takes `seconds`; forward and backward
/// passes share it as their floating-point operations. Values of `value_bytes` travel.
PipelineCosts pipeline_costs(const SplitModel& model, double seconds, int batch,
                             std::size_t value_bytes);

}  // namespace gossamer::train
