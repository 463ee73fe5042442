// Training as data: the samples, the optimizer's rule, and one peer's share of a call.
// BasicDevice::train and BasicDevice::update (gpu/device.hpp) serve it.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/program.hpp"

namespace gossamer::gpu {

/// The samples that programs read. Device memory.
struct SampleTable {
  const float* features = nullptr;       ///< [count, channels, pixels]
  const std::int32_t* labels = nullptr;  ///< [count], for softmax_cross_entropy
  const float* targets = nullptr;        ///< [count], for squared_error
};

/// The augmentation of training images: each is seen in a view, a crop of its own size at one of
/// (2 crop + 1)² places of the image padded with `crop` zeros on each side, flipped or not. Where
/// views are on, an index into the table has the number of a sample in its lower bits, and one of
/// count() views above.
struct ImageViews {
  static constexpr int kNumberBits = 24, kMostCrop = 5;

  int crop = 0;       ///< 0 … kMostCrop
  bool flip = false;  ///< half of the views are flipped horizontally
  int height = 0, width = 0;

  constexpr bool on() const { return crop > 0 || flip; }
  constexpr std::uint32_t count() const {
    const int side = 2 * crop + 1;
    return static_cast<std::uint32_t>(side * side * (flip ? 2 : 1));
  }
  static constexpr std::uint32_t index(std::uint32_t number, std::uint32_t view) {
    return view << kNumberBits | number;
  }
  static constexpr std::uint32_t number(std::uint32_t index) {
    return index & ((std::uint32_t{1} << kNumberBits) - 1);
  }
  /// The pixel of the image that the view of `index` shows at `pixel`, row by row; −1: one of the
  /// padding, which is 0.
  constexpr int source(std::uint32_t index, int pixel) const {
    const int view = static_cast<int>(index >> kNumberBits), side = 2 * crop + 1;
    const bool flipped = view / (side * side) == 1;
    const int column = flipped ? width - 1 - pixel % width : pixel % width;
    const int from_row = pixel / width + view / side % side - crop,
              from_column = column + view % side - crop;
    if (from_row < 0 || from_row >= height || from_column < 0 || from_column >= width) return -1;
    return from_row * width + from_column;
  }
};

/// The rows of d values that an optimizer keeps for a peer from step to step, zero at the start:
/// UpdateRule::state_rows() of them.
template <class Real>
using StateRows = std::array<Real*, 2>;

/// The optimizer's constants. train/optimizer.hpp has the formulas.
struct UpdateRule {
  enum class Kind { sgd, adam, adamw, muon };

  double momentum = 0;  ///< sgd, muon
  bool nesterov = false;
  double weight_decay = 0;
  Kind kind = Kind::sgd;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< adam, adamw
  int iterations = 5;                                 ///< muon: of Newton and Schulz

  /// sgd: the momentum, if it is not 0; adam and adamw: both moments; muon: the momentum, and the
  /// second moment of the tensors that are no matrices.
  constexpr std::size_t state_rows() const { return kind != Kind::sgd ? 2 : momentum != 0 ? 1 : 0; }
};

/// The numbers of an optimizer that change from step to step: γ, and, for adam and adamw,
/// 1 / (1 − β1^t) and 1 / (1 − β2^t) in the t-th step, t = step + 1.
struct StepFactors {
  double rate = 0, correction1 = 1, correction2 = 1;
};
constexpr StepFactors step_factors(const UpdateRule& rule, double rate, std::uint64_t step) {
  if (rule.kind == UpdateRule::Kind::sgd || rule.kind == UpdateRule::Kind::muon) return {rate};
  double power1 = rule.beta1, power2 = rule.beta2;
  double square1 = rule.beta1, square2 = rule.beta2;
  // Powers by squaring have the same bits on every device; a library's pow has not.
  for (std::uint64_t rest = step; rest > 0; rest /= 2) {
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

/// What a training call does with each batch.
enum class Pass {
  evaluate,  ///< forward: losses and hits; parameters and gradients stay unchanged
  gradient,  ///< forward and backward: the gradient, with its noise, and the loss
  step       ///< forward, backward and update
};

/// One peer's share of a training call: `steps` batches, one after the other. All its device memory
/// is on one GPU.
template <class Real>
struct Job {
  /// A GPU runs the job as a captured graph, which cannot wait for other GPUs.
  static constexpr bool kOneGpu = true;

  Real* parameters = nullptr;              ///< written by Pass::step alone
  StateRows<Real> state = {};              ///< the rule's rows; null beyond the rule's rows
  Real* gradient = nullptr;                ///< gradient: out; step: scratch; evaluate: unused
  const std::uint32_t* samples = nullptr;  ///< [steps, batch] indices into the table, with views if
                                           ///< the task's are on (host memory)
  int batch = 0;                           ///< 1 … program.batch
  int steps = 1;
  const double* rates = nullptr;  ///< [steps], for Pass::step (host memory)
  std::uint32_t peer = 0;         ///< key of the noise
  std::uint64_t first_step = 0;   ///< number of the first step: key of the noise, and the rule's t
  double weight = 1;              ///< the gradient of a batch's loss is multiplied by it
  double* loss = nullptr;         ///< the mean loss of each batch is added to it, in order
  /// The number of samples that have their largest output at their label, and a loss that is no
  /// NaN, is added to it; may be null.
  std::int64_t* hits = nullptr;

  void visit_memory(auto&& memory) const {
    memory.writes(parameters);
    for (Real* row : state) memory.writes(row);
    memory.writes(gradient, loss, hits);
  }
};

/// What a part of a network does with some samples of a batch. Where its first layer is a dense
/// layer or a convolution, the backward pass may be in two, so that no other part waits for what it
/// does not need: all but the gradient in that layer's input, which may go on from that of another
/// slice (LayerInput::begun_gradient), and then that; or all but the gradients of that layer's
/// parameters, and then these.
enum class PartPass {
  forward,
  backward,
  backward_but_input,
  backward_of_input,
  backward_but_parameters,
  backward_of_parameters,
};

/// A pass of one worker's part of a network over some samples of a batch, a microbatch. The forward
/// pass reads tensors of parts before it from the workspace, and the backward pass gradients from
/// the parts behind it; the caller moves them (train/split/split_model.hpp). The forward pass of
/// the part with the loss writes the gradient in the outputs too. The device adds the gradients of
/// microbatches of one batch in the order of their backward passes: ascending, they have the bits
/// of the whole batch's gradient on the CPU.
template <class Real>
struct PartJob {
  Real* workspace = nullptr;         ///< program.workspace values, kept from forward to backward
  const Real* parameters = nullptr;  ///< of the part, as are the gradients
  Real* gradient = nullptr;          ///< backward: out
  const std::uint32_t* samples = nullptr;  ///< [batch] indices into the table (host memory); for
                                           ///< parts that take the samples or have the loss
  int batch = 0;                           ///< of the microbatch: 1 … program.batch
  int whole_batch = 0;
  bool first = false;          ///< of the batch's microbatches: gradient and losses start from 0
  bool last = false;           ///< of them: the mean loss of the whole batch is added to `loss`
  double weight = 1;           ///< the gradient of the batch's loss is multiplied by it
  double* loss_sum = nullptr;  ///< of the samples so far, from microbatch to microbatch: for the
                               ///< CPU, where the mean loss is that of the whole batch to the bit
  double* loss = nullptr;
  std::int64_t* hits = nullptr;  ///< as of Job
};

/// The quintic of a Newton–Schulz iteration, whose slope at 0 is large: of a singular value s it
/// makes a s + b s³ + c s⁵, and after five iterations of all between 0.003 and 1 values near 1
/// (Jordan 2024). `epsilon` is added to the norm that the matrix is divided by.
struct NewtonSchulz {
  static constexpr double a = 3.4445, b = -4.7750, c = 2.0315, epsilon = 1e-7;
};

/// What Muon multiplies a step with a matrix by: sqrt(max(1, outputs / inputs)).
inline double muon_scale(std::size_t inputs, std::size_t outputs) {
  return outputs > inputs ? std::sqrt(static_cast<double>(outputs) / static_cast<double>(inputs))
                          : 1;
}

/// x ← one optimizer step with a given gradient. Jobs of one call write to disjoint rows.
template <class Real>
struct UpdateJob {
  Real* parameters = nullptr;
  StateRows<Real> state = {};
  const Real* gradient = nullptr;
  std::size_t length = 0;
  double rate = 0;
  std::uint64_t step = 0;
  int columns = 0;  ///< muon: the parameters are a matrix [length / columns, columns], row-major,
                    ///< [inputs, outputs]

  void visit_memory(auto&& memory) const {
    memory.writes(parameters);
    for (Real* row : state) memory.writes(row);
    memory.reads(gradient);
  }
};

/// The part of a training call that all its jobs share.
struct Task {
  const Program* program = nullptr;
  std::vector<SampleTable> tables = {};  ///< the same samples on each GPU, by GPU index
  UpdateRule rule = {};
  GradientNoise noise = {};
  ImageViews views = {};
};

}  // namespace gossamer::gpu
