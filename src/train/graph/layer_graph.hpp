// A model as a graph of layers, and the workspace of a program that runs some of them.
#pragma once

#include <compare>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "gpu/program.hpp"
#include "train/graph/lowering.hpp"

namespace gossamer::train {

/// Tensor 0 is the samples; tensor l + 1 is the output of layer l.
inline constexpr std::size_t kSamplesTensor = 0;
inline constexpr std::size_t kNoLayer = std::numeric_limits<std::size_t>::max();

struct GraphLayer : LoweredLayer {
  std::vector<std::size_t> inputs;  ///< tensors
  std::size_t output_values = 0;    ///< of a sample
  bool has_gradient = false;        ///< this layer, or one before it, has parameters

  /// Of a slice of a layer that is cut inside (train/split/slicing.hpp), which has one input: the
  /// layer from whose gradient in that input its own goes on, and whether it gives the sum of all
  /// slices to the layer whose output they take. A layer that gives none to it gives it to the one
  /// that goes on.
  std::size_t goes_on_from = kNoLayer;
  bool ends_chain = true;
};

/// Layers in an order in which each follows its inputs. Tensors of reshapes are those that they
/// reshape.
struct LayerGraph {
  std::size_t sample_values = 0;  ///< values of a sample
  std::vector<GraphLayer> layers;
  std::size_t output = kSamplesTensor;  ///< the tensor that the loss is of
  bool sample_gradient = false;         ///< the gradient in the samples is wanted

  std::size_t values(std::size_t tensor) const {  ///< of a sample
    return tensor == kSamplesTensor ? sample_values : layers[tensor - 1].output_values;
  }
  bool has_gradient(std::size_t tensor) const {
    return tensor == kSamplesTensor ? sample_gradient : layers[tensor - 1].has_gradient;
  }
};

/// Layers first … last − 1.
struct LayerRange {
  std::size_t first = 0, last = 0;
  bool contains(std::size_t layer) const { return layer >= first && layer < last; }
};

/// Input `input` of a layer.
struct TensorUse {
  std::size_t layer = 0, input = 0;
  auto operator<=>(const TensorUse&) const = default;
};

/// Where a program's tensors lie in its workspace, in values.
struct WorkspaceLayout {
  /// Without what only the model has: the loss, the shape of the samples and the parameters.
  gpu::Program program;
  std::vector<std::size_t> layer_values;  ///< by layer of the program: the output and the scratch
  std::size_t gradient_values = 0;        ///< of the gradients of outputs
  std::map<std::size_t, std::size_t> values;  ///< by tensor: those that the program takes or makes
  /// Gradients that another program makes, and those that this one makes for another, by the use
  /// whose gradient it is. Where a gradient goes on in this program, that with which it begins is
  /// among the former.
  std::map<TensorUse, std::size_t> gradients_in, gradients_out;
};

/// Lays out the workspace of the layers of `ranges`, for batches of up to `batch` samples: the
/// samples, if a layer takes them, other tensors that come from layers elsewhere, outputs and
/// scratch, and gradients of outputs, each with a buffer from the backward pass that writes it to
/// the one that reads it. The ranges ascend, and the backward pass takes them in reverse. Gradients
/// for layers elsewhere are sent at the end of the range that makes them; those from elsewhere are
/// received after the range behind the layer that makes them, and before the one before it.
WorkspaceLayout lay_out(const LayerGraph& graph, std::span<const LayerRange> ranges, int batch);

}  // namespace gossamer::train
