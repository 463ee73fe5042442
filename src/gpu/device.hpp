// Where arithmetic runs. Every operation has a leading peer dimension: it takes the requests of all peers that are ready
// together, so that a GPU may serve them with one kernel. On the CPU a peer's bits never depend on who shares its batch,
// on the thread count, on alignment or on how a row was cut into pieces.
//
// All pointers in requests are device memory, from Memory::allocate or, where host_accessible(), from anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/program.hpp"

namespace gossamer::gpu {

/// One neighbour's row (or the piece of it in question) and its weight in W.
template <class Real>
struct BasicMixSource {
  const Real* row = nullptr;
  Real weight = 0;
};
using MixSource = BasicMixSource<float>;

/// out ← x + Σ_j weight_j · (row_j − x), added in the order of `sources`; element-wise, so rows may be mixed in pieces.
/// out overlaps none of the inputs.
template <class Real>
struct BasicMixRequest {
  const Real* x = nullptr;
  Real* out = nullptr;
  std::span<const BasicMixSource<Real>> sources;
  std::size_t length = 0;  ///< values
};
using MixRequest = BasicMixRequest<float>;

/// y ← y + factor · x. x and y do not overlap.
template <class Real>
struct AxpyRequest {
  Real factor = 0;
  const Real* x = nullptr;
  Real* y = nullptr;
  std::size_t length = 0;
};

/// out ← out + (a − b). out may be a or b itself, but overlaps neither in part.
template <class Real>
struct DifferenceRequest {
  Real* out = nullptr;
  const Real* a = nullptr;
  const Real* b = nullptr;
  std::size_t length = 0;
};

/// y ← factor · y.
template <class Real>
struct ScaleRequest {
  Real factor = 0;
  Real* y = nullptr;
  std::size_t length = 0;
};

/// A number from two rows (or one row twice: a squared norm).
template <class Real>
struct ReduceRequest {
  const Real* a = nullptr;
  const Real* b = nullptr;
  std::size_t length = 0;
  double result = 0;  ///< out
};

/// Whether every value of a row is finite.
template <class Real>
struct FiniteRequest {
  const Real* row = nullptr;
  std::size_t length = 0;
  bool finite = true;  ///< out
};

/// Device memory. Any thread.
class Memory {
 public:
  virtual ~Memory() = default;
  /// `bytes` of memory at a 64-byte boundary, zero. Throws std::bad_alloc when there is not enough.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  /// Whether ordinary host memory may stand in requests.
  virtual bool host_accessible() const = 0;
};

/// Arithmetic on rows. Complete when the call returns. Any thread, several at once.
template <class Real>
class RowOperations {
 public:
  virtual ~RowOperations() = default;
  virtual void mix(std::span<const BasicMixRequest<Real>> requests) = 0;
  virtual void axpy(std::span<const AxpyRequest<Real>> requests) = 0;
  virtual void add_difference(std::span<const DifferenceRequest<Real>> requests) = 0;
  virtual void scale(std::span<const ScaleRequest<Real>> requests) = 0;
};

/// Numbers from rows. Complete when the call returns. Any thread, several at once.
template <class Real>
class Reductions {
 public:
  virtual ~Reductions() = default;
  /// Σ a_i b_i, accumulated in double in a fixed order.
  virtual void dot(std::span<ReduceRequest<Real>> requests) = 0;
  /// Σ (a_i − b_i)², accumulated in double in a fixed order.
  virtual void squared_distance(std::span<ReduceRequest<Real>> requests) = 0;
  virtual void all_finite(std::span<FiniteRequest<Real>> requests) = 0;
};

/// The samples that programs read. Device memory.
struct SampleTable {
  const float* features = nullptr;       ///< [count, channels, pixels]
  const std::int32_t* labels = nullptr;  ///< [count], for softmax_cross_entropy
  const float* targets = nullptr;        ///< [count], for squared_error
};

/// The optimizer's constants; train/optimizer.hpp tells the formula.
struct UpdateRule {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Normal noise on each coordinate of each gradient, from the stream (seed, peer, Purpose::gradient_noise, step).
struct GradientNoise {
  double deviation = 0;
  std::uint64_t seed = 0;
};

/// One peer's share of a call: `steps` batches, one after the other.
template <class Real>
struct Job {
  Real* parameters = nullptr;              ///< written by `step` only
  Real* momentum = nullptr;                ///< may be null where the rule's momentum is 0
  Real* gradient = nullptr;                ///< out of `gradient`; scratch of `step`; unused by `evaluate`
  const std::uint32_t* samples = nullptr;  ///< [steps, batch] indices into the table (host memory)
  int batch = 0;                           ///< 1 … program.batch
  int steps = 1;
  const double* rates = nullptr;           ///< [steps], for `step` (host memory)
  std::uint32_t peer = 0;                  ///< keys the noise,
  std::uint64_t first_step = 0;            ///< with this step and those after it
  double* losses = nullptr;                ///< out: [steps] mean batch losses (host memory)
  std::int64_t* hits = nullptr;            ///< out, may be null: [steps] samples whose largest output is their label
};

/// x ← one optimizer step with a given gradient.
template <class Real>
struct UpdateJob {
  Real* parameters = nullptr;
  Real* momentum = nullptr;
  const Real* gradient = nullptr;
  std::size_t length = 0;
  double rate = 0;
};

/// What a training call has in common for all peers.
struct Task {
  const Program* program = nullptr;
  SampleTable table = {};
  UpdateRule rule = {};
  GradientNoise noise = {};
};

/// Training of many small models at once. Complete when the call returns. Any thread, several at once; the jobs of a call
/// write to disjoint rows.
template <class Real>
class Training {
 public:
  virtual ~Training() = default;
  /// Gather, forward, backward and update, `steps` times.
  virtual void step(const Task& task, std::span<const Job<Real>> jobs) = 0;
  /// The gradient (with its noise) and loss of one batch.
  virtual void gradient(const Task& task, std::span<const Job<Real>> jobs) = 0;
  /// Losses and hits of the batches, parameters unchanged.
  virtual void evaluate(const Task& task, std::span<const Job<Real>> jobs) = 0;
  virtual void update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) = 0;
};

/// All roles together.
class Device : public Memory,
               public RowOperations<float>,
               public RowOperations<double>,
               public Reductions<float>,
               public Reductions<double>,
               public Training<float>,
               public Training<double> {
 public:
  using RowOperations<float>::mix, RowOperations<double>::mix;
  using RowOperations<float>::axpy, RowOperations<double>::axpy;
  using RowOperations<float>::add_difference, RowOperations<double>::add_difference;
  using RowOperations<float>::scale, RowOperations<double>::scale;
  using Reductions<float>::dot, Reductions<double>::dot;
  using Reductions<float>::squared_distance, Reductions<double>::squared_distance;
  using Reductions<float>::all_finite, Reductions<double>::all_finite;
  using Training<float>::step, Training<double>::step;
  using Training<float>::gradient, Training<double>::gradient;
  using Training<float>::evaluate, Training<double>::evaluate;
  using Training<float>::update, Training<double>::update;
};

}  // namespace gossamer::gpu
