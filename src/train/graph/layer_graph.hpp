// A model as a graph of layers, and the workspace of a program that runs consecutive ones of them.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <vector>

#include "gpu/program.hpp"
#include "train/graph/lowering.hpp"

namespace gossamer::train {

/// Tensor 0 is the samples; tensor l + 1 is the output of layer l.
inline constexpr std::size_t kSamplesTensor = 0;

struct GraphLayer : LoweredLayer {
  std::vector<std::size_t> inputs;  ///< tensors
  std::size_t output_values = 0;    ///< of a sample
  bool has_gradient = false;        ///< this layer, or one before it, has parameters
};

/// Layers in an order in which each follows its inputs. Tensors of reshapes are those that they
/// reshape.
struct LayerGraph {
  std::size_t sample_values = 0;  ///< values of a sample
  std::vector<GraphLayer> layers;
  std::size_t output = kSamplesTensor;  ///< the tensor that the loss is of

  std::size_t values(std::size_t tensor) const {  ///< of a sample
    return tensor == kSamplesTensor ? sample_values : layers[tensor - 1].output_values;
  }
  bool has_gradient(std::size_t tensor) const {
    return tensor != kSamplesTensor && layers[tensor - 1].has_gradient;
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
  /// Gradients that another program makes, and those that this one makes for another.
  std::map<TensorUse, std::size_t> gradients_in, gradients_out;
};

/// Lays out the workspace of the layers of `range`, for batches of up to `batch` samples: the
/// samples, if a layer takes them, other tensors that come from layers before the range, outputs
/// and scratch, and gradients of outputs, each with a buffer from the backward pass that writes it
/// to the one that reads it.
WorkspaceLayout lay_out(const LayerGraph& graph, LayerRange range, int batch);

}  // namespace gossamer::train
