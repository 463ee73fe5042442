// A compiled network as data: the layers' shapes, and the offsets of their parameters,
// activations and gradients. The layers form a directed acyclic graph and are listed in an order in
// which each follows those whose outputs it takes. A device runs a whole program for many peers:
// the CPU peer by peer, so that a peer's working set stays in its cache; a GPU layer by layer with
// all peers in one kernel, and the whole step as one captured graph. Programs do not depend on the
// number type.
//
// Activations are sample-major and channels-last: [batch, height, width, channels].
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

namespace gossamer::gpu {

/// gelu: x Φ(x) in the approximation ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))) (Hendrycks and Gimpel
/// 2016). Its derivative is no function of its value, so only an elementwise layer without bias has
/// it.
enum class Activation { none, relu, tanh, gelu };
/// Losses of a sample, averaged over the batch.
enum class Loss {
  softmax_cross_entropy,
  squared_error  ///< ½ (ŷ − y)²
};

/// The gradient in a convolution's input is one chain of additions: over blocks of this number of
/// outputs, and within a block over the kernel's places and then the outputs. A convolution that is
/// cut between blocks has the same chain.
inline constexpr int kChainChannels = 16;

/// Offset of a tensor that does not exist.
inline constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

/// y = activation(x W + b).
struct DenseOperation {
  int inputs = 0, outputs = 0;
  Activation activation = Activation::none;
  std::size_t weights = 0;      ///< in the row: [inputs, outputs]
  std::size_t bias = kNowhere;  ///< in the row: [outputs], or kNowhere
};

/// Stride 1, square kernel, zeros around.
/// y[h, w, o] = activation(b[o] + Σ_{i, j, c} x[h + i − padding, w + j − padding, c] W[i, j, c,
/// o]).
struct ConvolutionOperation {
  int height = 0, width = 0, channels = 0;  ///< of the input
  int outputs = 0;                          ///< channels of the output
  int kernel = 0, padding = 0;
  Activation activation = Activation::none;
  std::size_t weights = 0;      ///< in the row: [kernel, kernel, channels, outputs]
  std::size_t bias = kNowhere;  ///< in the row: [outputs], or kNowhere

  int padded_height() const { return height + 2 * padding; }
  int padded_width() const { return width + 2 * padding; }
  int output_height() const { return padded_height() - kernel + 1; }
  int output_width() const { return padded_width() - kernel + 1; }
};

/// Square window, stride = size; pixels that do not fill a window are left out. Of equal values the
/// first one is the maximum.
struct MaxPoolOperation {
  int height = 0, width = 0, channels = 0;
  int size = 0;
};

/// Wu and He 2018: x̂ = (x − μ) / sqrt(σ² + ε), statistics over a sample's pixels and one group's
/// channels; y = activation(scale x̂ + shift).
struct GroupNormOperation {
  int pixels = 0, channels = 0, groups = 0;
  Activation activation = Activation::none;
  std::size_t scale = 0, shift = 0;  ///< in the row: [channels] each
  static constexpr double kEpsilon = 1e-5;
};

/// The mean over windows of window_height × window_width, with strides of their size; pixels that
/// do not fill a window are left out.
struct AveragePoolOperation {
  int height = 0, width = 0, channels = 0;
  int window_height = 0, window_width = 0;
};

/// y = activation(x + b), value by value.
struct ElementwiseOperation {
  int values = 0;  ///< of a sample
  Activation activation = Activation::none;
  std::size_t bias = kNowhere;  ///< in the row: [values], or kNowhere
};

/// y = activation(Σ_k x_k) of the layer's inputs, added in their order.
struct SumOperation {
  int values = 0;  ///< of a sample
  Activation activation = Activation::none;
};

/// The channels of the layer's inputs beside each other, in each pixel.
struct ConcatenateOperation {
  int pixels = 0;
  std::vector<int> channels;  ///< of each input
};

/// Each value of a sample, rounded to an integer, is the number of a row of the table. The output
/// of a number that the table does not have is NaN. The layer takes the samples, which have no
/// gradient.
struct EmbeddingOperation {
  int tokens = 0;  ///< of a sample
  int vocabulary = 0, features = 0;
  std::size_t table = 0;  ///< in the row: [vocabulary, features]
};

/// Scaled dot-product attention within a sample (Vaswani et al. 2017). The input is [positions, 3
/// heads features]: the query, the key and the value of each head, head by head, so that the
/// channels of some heads are adjacent. y[i] = Σ_j p[i, j] value[j] for each head, p[i, ·] =
/// softmax_j(query[i] · key[j] / √features), where causal over j ≤ i only. Output: [positions,
/// heads features].
struct AttentionOperation {
  int positions = 0, heads = 0;
  int features = 0;  ///< of a head
  bool causal = false;

  constexpr int width() const { return heads * features; }
};

/// An output that a layer takes, or the samples, and the buffer for the gradient in it: offsets in
/// the workspace, in values.
struct LayerInput {
  std::size_t value = 0;
  std::size_t gradient = kNowhere;  ///< kNowhere: nothing that has parameters precedes this input
  /// Of a slice of a dense layer or a convolution: the gradient that the slice before has made,
  /// with which this one goes on.
  std::size_t begun_gradient = kNowhere;
  std::size_t values = 0;  ///< of a sample of the program
};

/// One layer and the offsets of its operands in the workspace, in values.
struct LayerOperation {
  std::variant<DenseOperation, ConvolutionOperation, MaxPoolOperation, GroupNormOperation,
               AveragePoolOperation, ElementwiseOperation, SumOperation, ConcatenateOperation,
               EmbeddingOperation, AttentionOperation>
      operation;
  /// The layer takes each position of a sample for a sample: a batch is positions · batch samples.
  int positions = 1;
  std::vector<LayerInput> inputs = {};
  std::size_t output = 0;
  std::size_t output_values = 0;  ///< of a sample of the program
  /// A buffer for each layer that takes this output, and for the loss. The gradient in the output
  /// is their sum, which the backward pass makes in the first one, and then overwrites. Empty:
  /// neither this layer nor one before it has parameters, and there is no backward pass.
  std::vector<std::size_t> output_gradients = {};
  std::size_t scratch =
      0;  ///< scratch_values(operation, batch) values; kept from forward to backward

  /// Of a layer with one input.
  std::size_t input() const { return inputs[0].value; }
  std::size_t input_gradient() const { return inputs[0].gradient; }
  /// kNowhere: there is no backward pass.
  std::size_t output_gradient() const {
    return output_gradients.empty() ? kNowhere : output_gradients[0];
  }
};

/// A network, or a part of one: consecutive layers that one worker holds (train/split/).
struct Program {
  std::vector<LayerOperation> layers;  ///< the loss is of the last one's output
  Loss loss = Loss::softmax_cross_entropy;
  bool takes_samples = true;     ///< false: a part none of whose layers takes the samples
  bool has_loss = true;          ///< false: a part that the last layer is not in
  int channels = 1, pixels = 1;  ///< of an input sample
  int outputs = 1;               ///< values of the last layer
  int batch = 0;                 ///< most samples per batch
  std::size_t parameters = 0;    ///< values of a row
  std::size_t workspace = 0;     ///< values of a peer's workspace, which starts with the samples,
                                 ///< if the program takes them: [batch, pixels, channels]

  std::size_t features() const {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(pixels);
  }
};

/// Values of scratch that a layer keeps for a batch.
std::size_t scratch_values(const DenseOperation& dense, int batch);
std::size_t scratch_values(const ConvolutionOperation& convolution, int batch);
std::size_t scratch_values(const MaxPoolOperation& pool, int batch);
std::size_t scratch_values(const GroupNormOperation& norm, int batch);
std::size_t scratch_values(const AveragePoolOperation& pool, int batch);
std::size_t scratch_values(const ElementwiseOperation& elementwise, int batch);
std::size_t scratch_values(const SumOperation& sum, int batch);
std::size_t scratch_values(const ConcatenateOperation& concatenate, int batch);
std::size_t scratch_values(const EmbeddingOperation& embedding, int batch);
std::size_t scratch_values(const AttentionOperation& attention, int batch);

}  // namespace gossamer::gpu
