// A compiled network as data: the layers' shapes, and the offsets of their parameters and
// activations. A device runs a whole program for many peers: the CPU peer by peer, so that a peer's
// working set stays in its cache; a GPU layer by layer with all peers in one kernel, and the whole
// step as one captured graph. Programs do not depend on the number type.
//
// Activations are sample-major and channels-last: [batch, height, width, channels].
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

namespace gossamer::gpu {

enum class Activation { none, relu, tanh };
/// Losses of a sample, averaged over the batch.
enum class Loss {
  softmax_cross_entropy,
  squared_error  ///< ½ (ŷ − y)²
};

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
  std::size_t weights = 0;  ///< in the row: [kernel, kernel, channels, outputs]
  std::size_t bias = 0;     ///< in the row: [outputs]

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

/// One layer and the offsets of its operands in the workspace, in values.
struct LayerOperation {
  std::variant<DenseOperation, ConvolutionOperation, MaxPoolOperation, GroupNormOperation>
      operation;
  std::size_t input = 0, output = 0;      ///< [batch, values of the layer's input / output]
  std::size_t input_gradient = kNowhere;  ///< kNowhere for the first layer
  std::size_t output_gradient = 0;        ///< overwritten by the backward pass
  std::size_t scratch =
      0;  ///< scratch_values(operation, batch) values; kept from forward to backward
};

struct Program {
  std::vector<LayerOperation> layers;
  Loss loss = Loss::softmax_cross_entropy;
  int channels = 1, pixels = 1;  ///< of an input sample
  int outputs = 1;               ///< values of the last layer
  int batch = 0;                 ///< most samples per batch
  std::size_t parameters = 0;    ///< values of a row
  std::size_t workspace = 0;     ///< values of a peer's workspace, which starts with the input:
                                 ///< [batch, pixels, channels]

  std::size_t features() const {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(pixels);
  }
};

/// Values of scratch that a layer keeps for a batch.
std::size_t scratch_values(const DenseOperation& dense, int batch);
std::size_t scratch_values(const ConvolutionOperation& convolution, int batch);
std::size_t scratch_values(const MaxPoolOperation& pool, int batch);
std::size_t scratch_values(const GroupNormOperation& norm, int batch);

}  // namespace gossamer::gpu
