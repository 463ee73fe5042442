// A node's training: gradients and optimizer steps on its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gossip/node/node_rows.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

/// Where a node's time went, in seconds of the scheduler's clock, since the start.
struct NodeTimes {
  double train_seconds = 0, wait_seconds = 0;
};

/// `x` and `g` are any rows of d values. Thread: the scheduler's.
class NodeTraining : public NodeRows {
 public:
  using NodeRows::NodeRows;

  /// x ← x after `steps` optimizer steps on this peer's next batches.
  task<void> local_steps(std::span<float> x, int steps);
  /// The same, concurrently with the rest of the round: the steps are done when
  /// local_steps_running() is false. Until then x is not to be touched.
  void begin_local_steps(std::span<float> x, int steps);
  /// co_await: until another thread has the steps, or is busy with earlier ones, so that sending
  /// and mixing then do not keep it waiting (Compute::handed_over).
  auto training_handed_over() { return exchange_.compute().handed_over(); }
  bool local_steps_running() const { return local_steps_running_; }
  /// g ← ∇f(x) on the next batch of this peer, or of peer `shard_of`. The batch stays the next one
  /// until update().
  task<void> gradient(std::span<float> x, std::span<float> g, int shard_of = kOwnShard);
  /// x ← one optimizer step with g. The batch after is the next one.
  task<void> update(std::span<float> x, std::span<float> g) {
    return update_part(x, g, 0, steps_done());
  }
  /// The same on a part of the parameters that begins at value `first`, with the rate of local step
  /// `step`: a server's update.
  task<void> update_part(std::span<float> x, std::span<float> g, std::size_t first,
                         std::uint64_t step);
  /// The batch after is the next one, without an update here: a server does it.
  void skip_update() { ++steps_done_; }
  /// Sets the optimizer's rows to zero; other state of it begins anew.
  task<void> reset_optimizer();

  /// The weight of any peer's loss in the objective; and batches in a pass over its shard.
  double data_weight(int peer) const { return exchange_.compute().trainer()->data_weight(peer); }
  std::uint64_t batches_per_epoch(int peer) const {
    return exchange_.compute().trainer()->batches_per_epoch(peer);
  }
  /// γ of this peer's next step.
  double rate() const {
    return exchange_.compute().trainer()->rate(id(), steps_done_ + rate_lead_);
  }
  /// The next step is step `step` of the schedule of step sizes, and so on from there.
  void set_rate_step(std::uint64_t step) { rate_lead_ = step - steps_done_; }

  // ---- for the engine
  /// Test loss and accuracy of x as it stands; none if it cannot be evaluated at the time.
  struct Evaluation {
    double loss = 0, accuracy = 0;
  };
  task<std::optional<Evaluation>> evaluate();
  /// Mean batch loss of the steps since the last call, if any is known.
  task<std::optional<double>> take_train_loss();
  /// Local steps done. They survive a round.
  std::uint64_t steps_done() const { return steps_done_; }
  void set_steps_done(std::uint64_t steps) { steps_done_ = steps; }
  NodeTimes times() const { return times_; }
  void set_times(const NodeTimes& times) { times_ = times; }

 protected:
  static constexpr int kOwnShard = -1;

  NodeTimes times_;

 private:
  task<void> train(TrainOperation operation, TrainRequest request);
  task<void> run_local_steps(std::span<float> x, int steps);
  TrainRequest request_for(std::span<float> x, std::span<float> g) const;

  std::uint64_t steps_done_ = 0, rate_lead_ = 0;
  task<void> concurrent_steps_;
  bool local_steps_running_ = false;
};

}  // namespace gossamer::gossip
