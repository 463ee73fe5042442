#include "train/split/split_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/split/cut_choice.hpp"

namespace gossamer::train {
namespace {

void move_parameters(gpu::DenseOperation& dense, std::size_t by) {
  dense.weights -= by;
  if (dense.bias != gpu::kNowhere) dense.bias -= by;
}
void move_parameters(gpu::ConvolutionOperation& convolution, std::size_t by) {
  convolution.weights -= by;
  if (convolution.bias != gpu::kNowhere) convolution.bias -= by;
}
void move_parameters(gpu::GroupNormOperation& norm, std::size_t by) {
  norm.scale -= by;
  norm.shift -= by;
}
void move_parameters(gpu::ElementwiseOperation& elementwise, std::size_t by) {
  if (elementwise.bias != gpu::kNowhere) elementwise.bias -= by;
}
void move_parameters(gpu::EmbeddingOperation& embedding, std::size_t by) { embedding.table -= by; }
void move_parameters(gpu::MaxPoolOperation&, std::size_t) {}
void move_parameters(gpu::AveragePoolOperation&, std::size_t) {}
void move_parameters(gpu::SumOperation&, std::size_t) {}
void move_parameters(gpu::ConcatenateOperation&, std::size_t) {}
void move_parameters(gpu::AttentionOperation&, std::size_t) {}

/// The part of the operations first … last − 1.
ModelPart make_part(const CompiledModel& model, std::size_t first, std::size_t last,
                    WorkspaceLayout& layout) {
  ModelPart part{.program = std::move(layout.program),
                 .first = model.operations()[first].name,
                 .last = model.operations()[last - 1].name};
  part.program.loss = model.program().loss;
  part.program.channels = model.program().channels;
  part.program.pixels = model.program().pixels;
  for (std::size_t o = 0; o < last; ++o) {
    const CompiledOperation& operation = model.operations()[o];
    if (o < first) {
      part.row_begin += operation.parameters;
      continue;
    }
    part.program.parameters += operation.parameters;
    for (std::size_t b = 0; b < operation.blocks; ++b) {
      part.blocks.push_back(model.blocks()[operation.first_block + b]);
      part.blocks.back().offset -= part.row_begin;
    }
    part.forward_flops += operation.forward_flops;
    part.backward_flops += operation.backward_flops;
  }
  for (gpu::LayerOperation& layer : part.program.layers)
    std::visit([&](auto& operation) { move_parameters(operation, part.row_begin); },
               layer.operation);
  return part;
}

/// The tensors that cross from `maker` to `user`.
void add_crossings(const LayerGraph& graph, int maker, const WorkspaceLayout& made, int user,
                   const WorkspaceLayout& used, std::vector<Crossing>& crossings) {
  for (const auto& [tensor, at_user] : used.values) {
    const auto from = made.values.find(tensor);
    // A part that takes a tensor which it has not made has it from the part that made it.
    if (tensor == kSamplesTensor || from == made.values.end()) continue;
    Crossing crossing{maker, user, graph.values(tensor), from->second, at_user, {}};
    for (const auto& [use, gradient] : used.gradients_out)
      if (graph.layers[use.layer].inputs[use.input] == tensor)
        crossing.gradients.push_back({gradient, made.gradients_in.at(use)});
    crossings.push_back(std::move(crossing));
  }
}

}  // namespace

Result<SplitModel> SplitModel::make(const CompiledModel& model, const SplitOptions& options,
                                    int batch) {
  GOSSAMER_TRY(const std::vector<std::size_t> begins, choose_cuts(model, options));
  const int microbatch = Microbatch::largest(batch, options.microbatches_of(batch));
  SplitModel split;
  std::vector<WorkspaceLayout> layouts;
  std::vector<LayerRange> ranges;
  const auto layer_of = [&](std::size_t operation) {
    return operation < model.operations().size() ? model.operations()[operation].first_layer
                                                 : model.graph().layers.size();
  };
  for (std::size_t p = 0; p < begins.size(); ++p) {
    const std::size_t end = p + 1 < begins.size() ? begins[p + 1] : model.operations().size();
    ranges.push_back({layer_of(begins[p]), layer_of(end)});
    layouts.push_back(lay_out(model.graph(), ranges.back(), microbatch));
    split.parts_.push_back(make_part(model, begins[p], end, layouts.back()));
  }
  for (std::size_t maker = 0; maker < layouts.size(); ++maker) {
    WorkspaceLayout made = layouts[maker];
    std::erase_if(made.values, [&](const auto& tensor) {
      return tensor.first == kSamplesTensor || !ranges[maker].contains(tensor.first - 1);
    });
    for (std::size_t user = maker + 1; user < layouts.size(); ++user)
      add_crossings(model.graph(), static_cast<int>(maker), made, static_cast<int>(user),
                    layouts[user], split.crossings_);
  }
  return split;
}

}  // namespace gossamer::train
