// The interface to training: gradients and optimizer steps on rows, requested in batches. The peer
// module implements it over train/; this module never sees a model or a data set.
#pragma once

#include <cstdint>
#include <span>

namespace gossamer::gossip {

enum class TrainOperation {
  local_steps,  ///< `steps` optimizer steps on the peer's next batches; gradient is scratch
  gradient,     ///< gradient ← ∇f(x; batch number `step` of shard_of's shard)
  update,  ///< x ← one optimizer step with `gradient`; both may be the same part of a row, then its
           ///< state is too
  evaluate,    ///< loss and accuracy of x on the test split; takes no virtual time
  take_loss,   ///< mean batch loss of the peer's gradients since the last request of it; takes no
               ///< virtual time
  batch_loss,  ///< loss of x on batch number `step` of shard_of's shard; takes no virtual time. A
               ///< peer may have several requests
  reset        ///< what keeps_state() speaks of begins anew; takes no virtual time
};

struct TrainRequest {
  int peer = 0;
  int shard_of = 0;  ///< the peer whose shard the batch is from: `peer`, except in `centralized`
  std::uint64_t step = 0;       ///< number of the first local step
  std::uint64_t rate_lead = 0;  ///< steps by which the schedule of step sizes is ahead of it
  int steps = 1;
  std::size_t first = 0;  ///< of update: the place in a row at which x, gradient and state begin
  std::span<float> x;     ///< rows are in device memory
  std::span<float> gradient;
  std::span<const std::span<float>> state;  ///< the rows that the optimizer keeps from step to step
  double loss = 0;           ///< out of evaluate: mean test loss; of take_loss, batch_loss
  std::uint64_t losses = 0;  ///< out of take_loss: batch losses in the mean; 0: none is known
  double accuracy = 0;       ///< out of evaluate: fraction right; NaN for regression
  bool evaluated = true;     ///< out of evaluate: false if x cannot be evaluated at the time
};

/// Thread: one call at a time, from the scheduler's thread or from the compute thread.
class Trainer {
 public:
  virtual ~Trainer() = default;
  /// Serves all requests, which are of one operation and one number of steps. Peers are distinct,
  /// but for batch_loss.
  /// Work that this thread submits to the device later sees the rows as after the call; another
  /// thread waits for Memory::finish first.
  virtual void run(TrainOperation operation, std::span<TrainRequest* const> requests) = 0;
  /// The optimizer's rate γ at a local step of a peer. Any thread.
  virtual double rate(int peer, std::uint64_t step) const = 0;
  /// Samples of a peer's shard, of any peer of the network; and batches of one pass over it. Any
  /// thread.
  virtual std::size_t shard_size(int peer) const = 0;
  virtual std::uint64_t batches_per_epoch(int peer) const = 0;
  /// The weight w_i of a peer's loss f_i in the objective (1/n) Σ_i w_i f_i; their mean is 1.
  /// Gradients are of w_i f_i, unless the algorithm weights models (DataWeights). Any thread.
  virtual double data_weight(int /*peer*/) const { return 1; }
  /// Whether it keeps state of a peer's optimizer beside the rows of its requests. Any thread.
  virtual bool keeps_state() const { return false; }
};

}  // namespace gossamer::gossip
