// Layers cut inside: each slice of a dense layer or a convolution computes some of the channels of
// its output (tensor parallelism; Shoeybi et al. 2019, "Megatron-LM").
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "train/graph/compiled_model.hpp"

namespace gossamer::train {

/// Values first … first + columns − 1 of the last extent of a block of the model's row.
struct BlockColumns {
  std::size_t block = 0;
  std::size_t first = 0, columns = 0;
};

/// Where a layer of a sliced graph is computed, and what of an operation it is.
struct SlicedLayer {
  int slice = 0;  ///< of the layer; 0 too where the layer is whole
  /// It puts channels together: it waits for other workers, for which what is before it should not.
  bool joins = false;
  std::vector<BlockColumns> blocks = {};
  double forward_flops = 0, backward_flops = 0;  ///< of one sample
};

struct SlicedGraph {
  LayerGraph graph;
  std::vector<SlicedLayer> layers;        ///< by layer of `graph`
  std::vector<std::size_t> stage_begins;  ///< by stage: its first layer in `graph`
};

/// The offsets of a layer's parameters in the row, those that it has.
std::vector<std::size_t*> parameter_offsets(decltype(gpu::LayerOperation::operation)& operation);

/// The graph of `model` with layers cut into `slices` slices. `stage_begins`: the operations with
/// which stages begin, the first being 0.
///
/// A dense layer is cut between any two outputs, and a convolution between blocks of
/// gpu::kChainChannels channels. Layers behind it that compute channel by channel (activations,
/// pools, group norms) or head by head (attention) are cut with it, as long as nothing else takes
/// what is between them, their stage is the same, and each slice has a channel, group or head.
/// Behind them the channels are put together again, in slice 0, which has all other layers too.
/// Layers that are too small for all slices stay whole. The slices of a layer follow each other,
/// the last one first.
///
/// The gradient in the input of a dense layer or convolution is one chain of additions over the
/// channels of its output, as in the whole model: slice k goes on from that of slice k − 1
/// (GraphLayer::goes_on_from).
SlicedGraph slice_layers(const CompiledModel& model, std::span<const std::size_t> stage_begins,
                         int slices);

}  // namespace gossamer::train
