// Learning of all peers of a process: model, data, shards and optimizer together. The engine calls
// this class alone. Its requests have a leading peer dimension (a span of requests), so that a GPU
// serves them as one batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "gpu/device.hpp"
#include "train/dataset.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/model.hpp"
#include "train/optimizer.hpp"
#include "train/privacy/pair_noise.hpp"
#include "train/shards.hpp"
#include "train/split/split_model.hpp"
#include "train/split/worker_links.hpp"

namespace gossamer::train {

/// `steps` optimizer steps on a peer's own batches, or one gradient. Rows are device memory of
/// parameters() values.
template <class Real>
struct StepRequest {
  int peer = 0;                  ///< owner of the shard and the random streams
  std::uint64_t first_step = 0;  ///< local step number of the first batch
  int steps = 1;
  Real* parameters = nullptr;  ///< in; local_steps: also out
  gpu::StateRows<Real> state =
      {};                    ///< local_steps: the optimizer's rows, as many as its rule keeps
  Real* gradient = nullptr;  ///< gradient: out. local_steps: scratch row
  double* loss = nullptr;    ///< device memory: the loss of each batch, before its step, is added
  std::uint64_t rate_lead =
      0;  ///< steps by which the schedule of step sizes is ahead of first_step
};

/// x ← one optimizer step with a given gradient (all-reduce's mean, a gradient tracker, …). Rows
/// are device memory.
template <class Real>
struct UpdateRequest {
  std::uint64_t step = 0;  ///< local step number
  Real* parameters = nullptr;
  gpu::StateRows<Real> state = {};
  const Real* gradient = nullptr;
  std::size_t length =
      0;         ///< values: parameters(), or fewer if the pointers address a piece of the rows
  int peer = 0;  ///< owner of the schedule of step sizes
  std::uint64_t rate_lead = 0;  ///< as in StepRequest
};

struct Evaluation {
  double loss = 0;      ///< mean over the samples
  double accuracy = 0;  ///< fraction; NaN for regression
};

template <class Real>
struct EvaluateRequest {
  const Real* parameters = nullptr;  ///< device memory
  Evaluation
      result;  ///< out: on the test split, or on the training split if there is no test sample
};

template <class Real>
struct LossRequest {
  int peer = 0;                      ///< owner of the shard
  std::uint64_t step = 0;            ///< local step number of the batch
  const Real* parameters = nullptr;  ///< device memory
  double loss = 0;                   ///< out: mean over the batch
};

struct LearnerRequest {
  std::shared_ptr<const Dataset> data;
  Shards shards;
  ModelSpec model;
  ShardOptions sampling = {};       ///< batch, weights
  OptimizerOptions optimizer = {};  ///< privacy: with the noise multiplier, if it is on
  PairNoiseRequest pair_noise = {};
  SplitOptions split = {};
  std::uint64_t local_steps =
      0;  ///< of a node in the whole run: the length of the schedule, unless local_epochs is given
  std::uint64_t local_epochs =
      0;                        ///< if not 0: the schedule's length in passes over a peer's shard
  bool weigh_gradients = true;  ///< gradients are multiplied by data_weight(); false: the algorithm
                                ///< weights what it makes of them
  std::size_t evaluation_jobs = 1 << 16;  ///< jobs of an evaluation that the device gets at once
  std::uint64_t seed = 0;
  bool different_initial =
      false;  ///< run.init = "different": each peer has a start of its own; otherwise all are equal
};

/// Thread: any, one at a time; work spreads over the device's threads.
template <class Real>
class Learner {
 public:
  virtual ~Learner() = default;
  virtual std::size_t parameters()
      const = 0;  ///< d; of a worker in a process of its own, its part's
  /// The tensors of a row, in order.
  virtual const std::vector<ParameterBlock>& blocks() const = 0;
  /// Starting parameters of `peer`, in host memory (He et al. 2015 for relu, Glorot and Bengio 2010
  /// otherwise; biases 0).
  virtual void initialise(int peer, std::span<Real> row) const = 0;
  virtual void local_steps(std::span<StepRequest<Real>> requests) = 0;
  virtual void gradient(std::span<StepRequest<Real>> requests) = 0;
  virtual void update(std::span<UpdateRequest<Real>> requests) = 0;
  virtual void evaluate(std::span<EvaluateRequest<Real>> requests) = 0;
  /// The losses of rows on batches of peers' shards, which change nothing.
  virtual void batch_loss(std::span<LossRequest<Real>> requests) = 0;
  /// The optimizer's rate γ at a local step of a peer. Thread: any.
  virtual double rate(int peer, std::uint64_t step) const = 0;
  /// The features of the data set have changed, and the shards of all peers have `sizes` samples
  /// (data.partition = own). Not while anything is trained or evaluated.
  virtual void refresh_data(std::vector<std::size_t> sizes) = 0;
  /// Number of samples in a peer's shard, and of batches in one pass over it; 0 for a shard of
  /// another process whose size is not known. Thread: any.
  virtual std::size_t shard_size(int peer) const = 0;
  /// The weight w_i of a peer's loss in the objective (1/n) Σ_i w_i f_i: 1, or, with data.weights =
  /// samples, n N_i / N, where N_i of all N training samples are the peer's. Thread: any.
  virtual double data_weight(int peer) const = 0;
  virtual std::uint64_t batches_per_epoch(int peer) const = 0;
  /// Bytes of device memory that training takes for each peer beside its rows.
  virtual std::size_t workspace_bytes() const = 0;
  /// The same of a model that is not cut.
  virtual std::size_t whole_workspace_bytes() const = 0;
  /// How the model is cut over the workers of a replica; null: it is whole.
  virtual std::shared_ptr<const SplitModel> split() const = 0;
};

/// The learner of `request.shards.size()` peers on `device`, which outlives it. With
/// `worker.links`, which outlive it, its rows are of that worker's part, and it throws WorkerLost.
/// Errors (invalid): data, shards and model that do not fit each other; a cut model with private
/// gradients, or with data that add noise to gradients. Real: float or double.
template <class Real>
Result<std::unique_ptr<Learner<Real>>> make_learner(LearnerRequest request,
                                                    gpu::BasicDevice<Real>& device,
                                                    Worker<Real> worker = {});

}  // namespace gossamer::train
