// Where arithmetic runs. Every operation has a leading peer dimension: it takes the requests of all
// peers that are ready together, so that a GPU may serve them with one kernel. On the CPU a peer's
// bits never depend on who shares its batch, on the thread count, on alignment or on how a row was
// cut into pieces.
//
// Order. What one thread asks of a device is done in the order it was asked for, as far as that
// thread's later calls can tell; the call itself may return before. `finish` waits for all of it:
// before another thread goes on with the results. What comes back to the host (downloads,
// reductions, sketches) has come when the call returns.
//
// All pointers in requests are device memory, from Memory::allocate or, where host_accessible(),
// from anywhere; what is in host memory says so.
//
// GPUs. A device may consist of several GPUs, each with memory of its own. A request is served by
// the GPU that holds its output, and may read memory of the others; all that a Job names is on one
// GPU. How rows are spread over GPUs changes no bits that are independent of the batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/philox.hpp"
#include "gpu/coded_rows.hpp"
#include "gpu/program.hpp"

namespace gossamer::gpu {

/// One neighbour's row (or the piece of it in question) and its weight in W.
template <class Real>
struct BasicMixSource {
  const Real* row = nullptr;
  Real weight = 0;
};
using MixSource = BasicMixSource<float>;

/// out ← x + Σ_j weight_j · (row_j − x), added in the order of `sources`; element-wise, so rows may
/// be mixed in pieces. out overlaps none of the inputs.
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

/// out ← out + factor · (a − b). out may be a or b itself, but overlaps neither in part.
template <class Real>
struct DifferenceRequest {
  Real* out = nullptr;
  const Real* a = nullptr;
  const Real* b = nullptr;
  std::size_t length = 0;
  Real factor = 1;
};

/// y ← factor · y.
template <class Real>
struct ScaleRequest {
  Real factor = 0;
  Real* y = nullptr;
  std::size_t length = 0;
};

/// out ← x / divisor, where the divisor lies in device memory: a value that an operation before
/// made. out may be x itself, but overlaps it in no other way; the divisor lies outside both.
template <class Real>
struct DivideRequest {
  const Real* x = nullptr;
  const Real* divisor = nullptr;  ///< [1]
  Real* out = nullptr;
  std::size_t length = 0;
};

/// to ← from. They do not overlap.
template <class Real>
struct CopyRequest {
  const Real* from = nullptr;
  Real* to = nullptr;
  std::size_t length = 0;
};

/// y ← value.
template <class Real>
struct FillRequest {
  Real value = 0;
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

/// Whether a row may be mixed: where a value of it is not finite, or beyond `largest` in magnitude,
/// `fault`, where it is 0, becomes `tag`. Several requests of a call may name one word: any of
/// those that find fault tells.
struct RangeCheckRequest {
  const float* row = nullptr;
  std::size_t length = 0;
  float largest = 0;               ///< ≥ 0, finite
  std::uint64_t* fault = nullptr;  ///< a FaultWord's
  std::uint64_t tag = 1;           ///< not 0: what tells this request from others
};

/// Most values of a sketch.
inline constexpr std::size_t kSketchLength = 1024;

/// Random projection of a row to m values, m = kSketchLength or, for shorter rows, d rounded up to
/// a power of two: s = Σ_b E_b H D_b x_b over the row's blocks x_b of m values, H the orthonormal
/// Hadamard matrix, D_b and E_b diagonals of random signs (after Ailon and Chazelle 2009). Linear,
/// and the signs depend on `seed` alone, so sketches of one run add and subtract as their rows do.
/// E‖s‖² = ‖x‖²; the norm has a relative standard deviation of at most 1/sqrt(2m), 2.2 %, whatever
/// the values (a count-sketch, which moves each to one place, is far off where two large ones
/// meet); and one block is exact. In double. Signs: bits of the stream (seed, kNoPeer,
/// Purpose::sketch), the highest of each number first, 0 for
/// +: m of D_b and then m of E_b, block by block.
template <class Real>
struct SketchRequest {
  const Real* row = nullptr;
  std::size_t length = 0;
  std::uint64_t seed = 0;
  double* sketch = nullptr;  ///< out: [sketch_length(length)] (host memory)
};
constexpr std::size_t sketch_length(std::size_t d) {
  std::size_t m = 1;
  while (m < d && m < kSketchLength) m *= 2;
  return m;
}

/// Numbers `first` to `first + length − 1` of the stream (seed, peer, purpose, step): those of
/// RandomStream's next_u32, or of its next_float.
template <class Value>
struct RandomRequest {
  std::uint64_t seed = 0;
  std::uint32_t peer = 0;
  Purpose purpose = Purpose::test;
  std::uint64_t step = 0;
  std::uint64_t first = 0;
  Value* out = nullptr;
  std::size_t length = 0;
};

struct MemoryInfo {
  std::size_t free = 0, total = 0;  ///< bytes
};

/// Memory of the device, and of the host for it. Any thread.
class Memory {
 public:
  virtual ~Memory() = default;
  /// Number of GPUs, indexed from 0. The CPU counts as one.
  virtual int gpu_count() const { return 1; }
  /// The GPU index of memory from allocate().
  virtual int gpu_of(const void*) const { return 0; }
  /// `bytes` of memory of a GPU at a 64-byte boundary, zero. Throws std::bad_alloc when there is
  /// not enough.
  virtual void* allocate(std::size_t bytes, int gpu_index = 0) = 0;
  /// Waits for what uses it.
  virtual void release(void* memory) = 0;
  /// `host` may change when the call returns.
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  /// Whether the host may read and write device memory, and ordinary host memory stand in requests.
  virtual bool host_accessible() const = 0;
  virtual MemoryInfo memory_info(int gpu_index = 0) = 0;

  /// Host memory that copies from and to the device are fastest with (pinned). Throws
  /// std::bad_alloc.
  virtual void* allocate_host(std::size_t bytes) = 0;
  virtual void release_host(void* memory) = 0;

  /// Waits until all that this thread has asked for is done.
  virtual void finish() = 0;
};

/// Copies that run beside the arithmetic. A copy begins when all is done that this thread asked for
/// before; copies of one direction and one GPU are done in order. `done` is called from any thread
/// (from within the call, it may be) and must not call the device. Host memory is from
/// allocate_host. Any thread.
class Transfers {
 public:
  virtual ~Transfers() = default;
  virtual void begin_download(void* host, const void* device, std::size_t bytes,
                              std::function<void()> done) = 0;
  virtual void begin_upload(void* device, const void* host, std::size_t bytes,
                            std::function<void()> done) = 0;
};

/// Arithmetic on rows. Any thread, several at once.
template <class Real>
class RowOperations {
 public:
  virtual ~RowOperations() = default;
  virtual void mix(std::span<const BasicMixRequest<Real>> requests) = 0;
  virtual void axpy(std::span<const AxpyRequest<Real>> requests) = 0;
  virtual void add_difference(std::span<const DifferenceRequest<Real>> requests) = 0;
  virtual void scale(std::span<const ScaleRequest<Real>> requests) = 0;
  virtual void divide(std::span<const DivideRequest<Real>> requests) = 0;
  virtual void copy(std::span<const CopyRequest<Real>> requests) = 0;
  virtual void fill(std::span<const FillRequest<Real>> requests) = 0;
};

/// Rows in fewer bytes. Any thread, several at once.
class Conversions {
 public:
  virtual ~Conversions() = default;
  virtual void to_bf16(std::span<const Bf16Request> requests) = 0;
  virtual void from_bf16(std::span<const Bf16Request> requests) = 0;
  virtual void to_int8(std::span<const Int8Request> requests) = 0;
  virtual void from_int8(std::span<const Int8Request> requests) = 0;
  virtual void to_signs(std::span<const SignRequest> requests) = 0;
  virtual void from_signs(std::span<const SignRequest> requests) = 0;
};

/// Rows as a few of their values. Any thread, several at once.
class Selections {
 public:
  virtual ~Selections() = default;
  virtual void largest(std::span<const LargestRequest> requests) = 0;
  /// The words of unsound requests are set when finish() has returned, and may be before.
  virtual void add_placed(std::span<const PlacedRequest> requests) = 0;
  virtual void sample(std::span<const SampledRequest> requests) = 0;
  virtual void add_sampled(std::span<const SampledRequest> requests) = 0;
};

/// Looks at rows, which nobody waits for. Any thread, several at once.
class Judging {
 public:
  virtual ~Judging() = default;
  /// The words are set when finish() has returned, and may be before.
  virtual void check_range(std::span<const RangeCheckRequest> requests) = 0;
};

/// Keyed random numbers, the same on every device. Any thread, several at once.
class Randomness {
 public:
  virtual ~Randomness() = default;
  virtual void integers(std::span<const RandomRequest<std::uint32_t>> requests) = 0;
  virtual void uniforms(std::span<const RandomRequest<float>> requests) = 0;
};

/// Numbers from rows, here when the call returns. Any thread, several at once.
template <class Real>
class Reductions {
 public:
  virtual ~Reductions() = default;
  /// Σ a_i b_i, accumulated in double in a fixed order.
  virtual void dot(std::span<ReduceRequest<Real>> requests) = 0;
  /// Σ (a_i − b_i)², accumulated in double in a fixed order.
  virtual void squared_distance(std::span<ReduceRequest<Real>> requests) = 0;
  virtual void sketch(std::span<const SketchRequest<Real>> requests) = 0;
};

/// The samples that programs read. Device memory.
struct SampleTable {
  const float* features = nullptr;       ///< [count, channels, pixels]
  const std::int32_t* labels = nullptr;  ///< [count], for softmax_cross_entropy
  const float* targets = nullptr;        ///< [count], for squared_error
};

/// The rows of d values that an optimizer keeps for a peer from step to step, zero at the start: as
/// many as the rule says.
template <class Real>
using StateRows = std::array<Real*, 2>;

/// The optimizer's constants; train/optimizer.hpp tells the formulas.
struct UpdateRule {
  enum class Kind { sgd, adam, adamw };

  double momentum = 0;  ///< sgd
  bool nesterov = false;
  double weight_decay = 0;
  Kind kind = Kind::sgd;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< adam, adamw

  /// sgd: the momentum, where it is not 0; adam and adamw: both moments.
  constexpr std::size_t state_rows() const { return kind != Kind::sgd ? 2 : momentum != 0 ? 1 : 0; }
};

/// What of an optimizer changes from step to step: γ, and, for adam and adamw, 1 / (1 − β1^t) and 1
/// / (1 − β2^t) in the t-th step, t = step + 1.
struct StepFactors {
  double rate = 0, correction1 = 1, correction2 = 1;
};
constexpr StepFactors step_factors(const UpdateRule& rule, double rate, std::uint64_t step) {
  if (rule.kind == UpdateRule::Kind::sgd) return {rate};
  double power1 = rule.beta1, power2 = rule.beta2;
  double square1 = rule.beta1, square2 = rule.beta2;
  for (std::uint64_t rest = step; rest > 0;
       rest /= 2) {  // the same bits wherever it is computed, as no library's pow has
    if (rest % 2 == 1) power1 *= square1, power2 *= square2;
    square1 *= square1, square2 *= square2;
  }
  return {rate, 1 / (1 - power1), 1 / (1 - power2)};
}

/// Normal noise on each coordinate of each gradient, from the stream (seed, peer,
/// Purpose::gradient_noise, step).
struct GradientNoise {
  double deviation = 0;
  std::uint64_t seed = 0;
};

/// One peer's share of a call: `steps` batches, one after the other.
template <class Real>
struct Job {
  Real* parameters = nullptr;  ///< written by `step` only
  StateRows<Real> state = {};  ///< the rule's; null beyond those that it keeps
  Real* gradient = nullptr;    ///< out of `gradient`; scratch of `step`; unused by `evaluate`
  const std::uint32_t* samples = nullptr;  ///< [steps, batch] indices into the table (host memory)
  int batch = 0;                           ///< 1 … program.batch
  int steps = 1;
  const double* rates = nullptr;  ///< [steps], for `step` (host memory)
  std::uint32_t peer = 0;         ///< keys the noise,
  std::uint64_t first_step = 0;   ///< with this step and those after it; the rule's step number too
  double* loss = nullptr;         ///< the mean loss of each batch is added, in order
  std::int64_t* hits =
      nullptr;  ///< may be null: samples whose largest output is their label are added
};

/// x ← one optimizer step with a given gradient.
template <class Real>
struct UpdateJob {
  Real* parameters = nullptr;
  StateRows<Real> state = {};
  const Real* gradient = nullptr;
  std::size_t length = 0;
  double rate = 0;
  std::uint64_t step = 0;
};

/// What a training call has in common for all peers.
struct Task {
  const Program* program = nullptr;
  std::vector<SampleTable> tables = {};  ///< the same samples on each GPU, by GPU index
  UpdateRule rule = {};
  GradientNoise noise = {};
};

/// Training of many small models at once. Any thread, several at once; the jobs of a call write to
/// disjoint rows.
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
               public Transfers,
               public Conversions,
               public Selections,
               public Judging,
               public Randomness,
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
  using RowOperations<float>::divide, RowOperations<double>::divide;
  using RowOperations<float>::copy, RowOperations<double>::copy;
  using RowOperations<float>::fill, RowOperations<double>::fill;
  using Reductions<float>::dot, Reductions<double>::dot;
  using Reductions<float>::squared_distance, Reductions<double>::squared_distance;
  using Reductions<float>::sketch, Reductions<double>::sketch;
  using Training<float>::step, Training<double>::step;
  using Training<float>::gradient, Training<double>::gradient;
  using Training<float>::evaluate, Training<double>::evaluate;
  using Training<float>::update, Training<double>::update;

  /// What a person calls it: "cpu, 2 threads", "cuda:0, NVIDIA H200, 139.7 GiB", "cuda:0-3, 4 × …".
  virtual std::string description() const = 0;
};

}  // namespace gossamer::gpu
