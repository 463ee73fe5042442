// What a peer learns: model, data, shards and optimizer of all peers of a process, put together.
// The engine talks to this class alone; its requests carry a leading peer dimension (a span of
// requests), so that a GPU serves them as one batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "gpu/device.hpp"
#include "train/compiled_model.hpp"
#include "train/dataset.hpp"
#include "train/model.hpp"
#include "train/optimizer.hpp"
#include "train/shards.hpp"

namespace gossamer::train {

/// `steps` optimizer steps on a peer's own batches, or one gradient. Rows have parameters() values,
/// in device memory.
template <class Real>
struct StepRequest {
  int peer = 0;                  ///< whose shard and random streams
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

/// x ← one optimizer step with a gradient from elsewhere (all-reduce's mean, a tracker, …). Rows in
/// device memory.
template <class Real>
struct UpdateRequest {
  std::uint64_t step = 0;  ///< local step number
  Real* parameters = nullptr;
  gpu::StateRows<Real> state = {};
  const Real* gradient = nullptr;
  std::size_t length =
      0;         ///< values: parameters(), or fewer where the pointers are to a part of the rows
  int peer = 0;  ///< whose schedule of step sizes it is
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
      result;  ///< out: on the test split; on the training split where there is no test sample
};

struct LearnerRequest {
  std::shared_ptr<const Dataset> data;
  Shards shards;
  ModelSpec model;
  ShardOptions sampling = {};  ///< batch
  OptimizerOptions optimizer = {};
  std::uint64_t local_steps =
      0;  ///< of a node in the whole run: the length of a schedule that has one; or, where not 0,
  std::uint64_t local_epochs = 0;  ///< a peer's passes over its shard
  std::uint64_t seed = 0;
  bool different_initial =
      false;  ///< run.init = "different": each peer its own start; else all equal
};

/// Thread: calls may come from any one thread at a time; inside, work spreads over the device's
/// threads.
template <class Real>
class Learner {
 public:
  virtual ~Learner() = default;
  virtual std::size_t parameters() const = 0;  ///< d
  /// The tensors that a row is made of, in order.
  virtual const std::vector<ParameterBlock>& blocks() const = 0;
  /// Starting parameters of `peer`, in host memory (He et al. 2015 for relu, Glorot and Bengio 2010
  /// otherwise; biases 0).
  virtual void initialise(int peer, std::span<Real> row) const = 0;
  virtual void local_steps(std::span<StepRequest<Real>> requests) = 0;
  virtual void gradient(std::span<StepRequest<Real>> requests) = 0;
  virtual void update(std::span<UpdateRequest<Real>> requests) = 0;
  virtual void evaluate(std::span<EvaluateRequest<Real>> requests) = 0;
  /// The optimizer's rate at a local step of a peer. Any thread.
  virtual double rate(int peer, std::uint64_t step) const = 0;
  /// Samples of a peer's shard, and batches of one pass over it. Any thread.
  virtual std::size_t shard_size(int peer) const = 0;
  virtual std::uint64_t batches_per_epoch(int peer) const = 0;
  /// Device memory that training takes for each peer beside its rows.
  virtual std::size_t workspace_bytes() const = 0;
};

/// The learner of `request.shards.size()` peers on `device`, which outlives it. Data, shards and
/// model that do not fit each other are refused in words. Real: float or double.
template <class Real>
Result<std::unique_ptr<Learner<Real>>> make_learner(LearnerRequest request, gpu::Device& device);

}  // namespace gossamer::train
