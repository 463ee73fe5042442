#include "train/split/split_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "train/split/cut_choice.hpp"
#include "train/split/slicing.hpp"

namespace gossamer::train {

/// Cuts one model.
class ModelCutter {
 public:
  ModelCutter(const CompiledModel& model, const SplitOptions& options,
              std::vector<std::size_t> begins, int microbatch)
      : model_(model),
        options_(options),
        begins_(std::move(begins)),
        microbatch_(microbatch),
        sliced_(slice_layers(model, begins_, options.parameters)) {}

  Result<SplitModel> cut() {
    for (std::size_t stage = 0; stage < begins_.size(); ++stage) {
      add_parts(stage);
      find_segments(stage);
      if (stage > 0) split_.cuts_.push_back(model_.operations()[begins_[stage]].name);
    }
    lay_out_workers();
    for (std::size_t s = 0; s < ranges_.size(); ++s) fill_segment(s);
    GOSSAMER_TRY_STATUS(check_slices());
    add_outputs();
    add_gradients();
    mark_those_that_send_before_parameters();
    split_.blocks_ = model_.blocks();
    split_.is_eager_ = options_.is_eager();
    return std::move(split_);
  }

 private:
  std::size_t end_of(std::size_t stage) const {  // operations
    return stage + 1 < begins_.size() ? begins_[stage + 1] : model_.operations().size();
  }

  void add_parts(std::size_t stage) {
    for (int k = 0; k < options_.parameters; ++k)
      split_.parts_.push_back({.stage = static_cast<int>(stage),
                               .slice = k,
                               .first = model_.operations()[begins_[stage]].name,
                               .last = model_.operations()[end_of(stage) - 1].name});
  }

  /// Layers of one slice that follow each other, without a wait for another slice between them.
  void find_segments(std::size_t stage) {
    const std::size_t end =
        stage + 1 < begins_.size() ? sliced_.stage_begins[stage + 1] : sliced_.layers.size();
    for (std::size_t first = sliced_.stage_begins[stage], last = first; first < end; first = last) {
      const int slice = sliced_.layers[first].slice;
      do ++last;
      while (last < end && sliced_.layers[last].slice == slice && !sliced_.layers[last].joins);
      ranges_.push_back({first, last});
      split_.segments_.push_back(
          {.program = {}, .worker = static_cast<int>(stage) * options_.parameters + slice});
    }
    split_.stage_ends_.push_back(static_cast<int>(ranges_.size()));
  }

  void lay_out_workers() {
    for (std::size_t w = 0; w < split_.parts_.size(); ++w) {
      std::vector<LayerRange> own;
      for (std::size_t s = 0; s < ranges_.size(); ++s)
        if (split_.segments_[s].worker == static_cast<int>(w)) own.push_back(ranges_[s]);
      if (own.empty()) {
        layouts_.emplace_back();
        continue;
      }
      layouts_.push_back(lay_out(sliced_.graph, own, microbatch_));
      split_.parts_[w].workspace = layouts_.back().program.workspace;
    }
    next_layer_.resize(layouts_.size());
  }

  /// The program of a segment: some layers of its worker's, which are taken in order.
  void fill_segment(std::size_t s) {
    Segment& segment = split_.segments_[s];
    const auto worker = static_cast<std::size_t>(segment.worker);
    ModelPart& part = split_.parts_[worker];
    const gpu::Program& all = layouts_[worker].program;
    gpu::Program& program = segment.program;
    program.loss = model_.program().loss;
    program.takes_samples = false;
    program.has_loss = ranges_[s].last == sliced_.layers.size();
    program.channels = model_.program().channels;
    program.pixels = model_.program().pixels;
    program.outputs = all.outputs;
    program.batch = all.batch;
    program.workspace = all.workspace;
    segment.row_begin = part.parameters;
    for (std::size_t l = ranges_[s].first; l < ranges_[s].last; ++l) {
      program.layers.push_back(all.layers[next_layer_[worker]++]);
      const SlicedLayer& layer = sliced_.layers[l];
      for (const std::size_t input : sliced_.graph.layers[l].inputs)
        program.takes_samples = program.takes_samples || input == kSamplesTensor;
      segment.forward_flops += layer.forward_flops;
      segment.backward_flops += layer.backward_flops;
      const GraphLayer& graph = sliced_.graph.layers[l];
      segment.goes_on = segment.goes_on || graph.goes_on_from != kNoLayer;
      // A product and its two gradients take the same.
      if (l == ranges_[s].first) segment.first_product_flops = layer.forward_flops;
      add_blocks(layer, segment, part, program.layers.back());
    }
    program.parameters = part.parameters - segment.row_begin;
    part.forward_flops += segment.forward_flops;
    part.backward_flops += segment.backward_flops;
  }

  /// The parameters of a layer go behind those that the worker has.
  void add_blocks(const SlicedLayer& sliced, const Segment& segment, ModelPart& part,
                  gpu::LayerOperation& layer) {
    const std::vector<std::size_t*> offsets = parameter_offsets(layer.operation);
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const BlockColumns& columns = sliced.blocks[i];
      ParameterBlock block = model_.blocks()[columns.block];
      const auto all = static_cast<std::size_t>(block.shape.back());
      const bool is_whole = columns.columns == all;
      RowPiece piece{.rows = is_whole ? 1 : block.length / all,
                     .columns = is_whole ? block.length : columns.columns,
                     .own = part.parameters,
                     .whole = block.offset + columns.first,
                     .stride = all};
      block.shape.back() = static_cast<int>(columns.columns);
      block.offset = part.parameters;
      block.length = piece.rows * piece.columns;
      *offsets[i] = part.parameters - segment.row_begin;
      part.parameters += block.length;
      part.pieces.push_back(piece);
      part.blocks.push_back(std::move(block));
    }
  }

  Status check_slices() const {
    for (const ModelPart& part : split_.parts_)
      if (part.parameters == 0)
        return invalid_error(
            fmt::format("split.parameters: {} workers cannot share '{}': each of its operations "
                        "has fewer units, "
                        "blocks of {} channels or heads",
                        options_.parameters, part.operations(), gpu::kChainChannels));
    return {};
  }

  int segment_with(std::size_t layer) const {
    const auto found =
        std::ranges::find_if(ranges_, [&](LayerRange range) { return range.contains(layer); });
    return static_cast<int>(found - ranges_.begin());
  }
  int maker_of(std::size_t tensor) const { return segment_with(tensor - 1); }
  const WorkspaceLayout& layout(int segment) const {
    return layouts_[static_cast<std::size_t>(
        split_.segments_[static_cast<std::size_t>(segment)].worker)];
  }

  void add_outputs() {
    std::map<std::pair<int, std::size_t>, bool> sent;  // by worker and tensor
    for (int user = 0; user < static_cast<int>(ranges_.size()); ++user) {
      const LayerRange range = ranges_[static_cast<std::size_t>(user)];
      const int worker = split_.segments_[static_cast<std::size_t>(user)].worker;
      for (std::size_t l = range.first; l < range.last; ++l)
        for (const std::size_t tensor : sliced_.graph.layers[l].inputs) {
          if (tensor == kSamplesTensor) continue;
          const int maker = maker_of(tensor);
          if (split_.segments_[static_cast<std::size_t>(maker)].worker == worker ||
              std::exchange(sent[{worker, tensor}], true))
            continue;
          split_.outputs_.push_back({maker, user, sliced_.graph.values(tensor),
                                     layout(maker).values.at(tensor),
                                     layout(user).values.at(tensor)});
        }
    }
    std::ranges::stable_sort(split_.outputs_, {}, &Message::from);
  }

  /// Of each use of a tensor that another worker made: to that one, or to the slice that goes on.
  void add_gradients() {
    std::map<std::size_t, std::size_t> goes_on;
    for (std::size_t l = 0; l < sliced_.layers.size(); ++l)
      if (const std::size_t from = sliced_.graph.layers[l].goes_on_from; from != kNoLayer)
        goes_on[from] = l;
    for (int user = static_cast<int>(ranges_.size()); user-- > 0;)
      for (const auto& [use, at_user] : layout(user).gradients_out) {
        if (!ranges_[static_cast<std::size_t>(user)].contains(use.layer)) continue;
        const GraphLayer& layer = sliced_.graph.layers[use.layer];
        const std::size_t tensor = layer.inputs[use.input];
        const int to = layer.ends_chain ? maker_of(tensor) : segment_with(goes_on.at(use.layer));
        split_.gradients_.push_back({user, to, sliced_.graph.values(tensor), at_user,
                                     layout(to).gradients_in.at(use), !layer.ends_chain});
      }
  }

  /// Slices do so without split.overlap too: else they would not compute side by side.
  void mark_those_that_send_before_parameters() {
    for (const Message& message : split_.gradients_) {
      Segment& segment = split_.segments_[static_cast<std::size_t>(message.from)];
      const auto& first = segment.program.layers.front().operation;
      const bool can_be_in_two = std::holds_alternative<gpu::DenseOperation>(first) ||
                                 std::holds_alternative<gpu::ConvolutionOperation>(first);
      if (can_be_in_two && !segment.goes_on && (options_.overlap || message.is_begun))
        segment.sends_before_parameters = true;
    }
  }

  const CompiledModel& model_;
  const SplitOptions& options_;
  std::vector<std::size_t> begins_;
  int microbatch_;
  SlicedGraph sliced_;
  std::vector<LayerRange> ranges_;        // by segment
  std::vector<WorkspaceLayout> layouts_;  // by worker
  std::vector<std::size_t> next_layer_;   // likewise: of its layout
  SplitModel split_;
};

template <class Real>
void put_part(const ModelPart& part, const Real* own, std::span<Real> whole) {
  part.for_each_run([&](std::size_t in_whole, std::size_t in_own, std::size_t values) {
    std::copy_n(own + in_own, values, whole.data() + in_whole);
  });
}

template <class Real>
void initialise_part(const CompiledModel& model, const ModelPart& part, std::uint64_t seed,
                     std::uint32_t stream, Real* own) {
  std::vector<Real> tensor;
  auto block = model.blocks().end();
  part.for_each_run([&](std::size_t in_whole, std::size_t in_own, std::size_t values) {
    const auto behind =
        std::ranges::upper_bound(model.blocks(), in_whole, {}, &ParameterBlock::offset);
    if (std::exchange(block, std::prev(behind)) != std::prev(behind)) {
      tensor.resize(block->length);
      model.initialise(seed, stream, std::span<Real>(tensor), block->offset);
    }
    std::copy_n(tensor.data() + (in_whole - block->offset), values, own + in_own);
  });
}

template void initialise_part(const CompiledModel&, const ModelPart&, std::uint64_t, std::uint32_t,
                              float*);
template void initialise_part(const CompiledModel&, const ModelPart&, std::uint64_t, std::uint32_t,
                              double*);
template void put_part(const ModelPart&, const float*, std::span<float>);
template void put_part(const ModelPart&, const double*, std::span<double>);

SplitModel::Range SplitModel::segments_of(int stage) const {
  const auto s = static_cast<std::size_t>(stage);
  return {s > 0 ? stage_ends_[s - 1] : 0, stage_ends_[s]};
}

Result<SplitModel> SplitModel::make(const CompiledModel& model, const SplitOptions& options,
                                    int batch) {
  GOSSAMER_TRY(std::vector<std::size_t> begins, choose_cuts(model, options));
  const int microbatch = Microbatch::largest(batch, options.microbatches_of(batch));
  return ModelCutter(model, options, std::move(begins), microbatch).cut();
}

}  // namespace gossamer::train
