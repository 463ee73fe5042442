#include "train/split/slicing.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.hpp"

namespace gossamer::train {
namespace {

using LayerVariant = decltype(gpu::LayerOperation::operation);

/// What remains of an operation where it computes channels first … last − 1 of its input.
struct Channels {
  int first = 0, last = 0;
  int count() const { return last - first; }
};

/// Channels of the blocks between which a layer that takes `channels` sliced channels can be cut;
/// 0: the layer cannot be cut, for example because a reshape before it has made other channels.
int granule_of(const gpu::MaxPoolOperation& pool, int channels) {
  return pool.channels == channels ? 1 : 0;
}
int granule_of(const gpu::AveragePoolOperation& pool, int channels) {
  return pool.channels == channels ? 1 : 0;
}
int granule_of(const gpu::ElementwiseOperation& elementwise, int) {
  return elementwise.bias == gpu::kNowhere ? 1 : 0;
}
int granule_of(const gpu::GroupNormOperation& norm, int channels) {
  return norm.channels == channels ? norm.channels / norm.groups : 0;
}
int granule_of(const gpu::AttentionOperation& attention, int channels) {
  return 3 * attention.width() == channels ? 3 * attention.features : 0;
}
template <class Other>
int granule_of(const Other&, int) {
  return 0;
}

/// Makes a layer one of fewer channels.
void narrow(gpu::DenseOperation& dense, Channels to, int) { dense.outputs = to.count(); }
void narrow(gpu::ConvolutionOperation& convolution, Channels to, int) {
  convolution.outputs = to.count();
}
void narrow(gpu::MaxPoolOperation& pool, Channels to, int) { pool.channels = to.count(); }
void narrow(gpu::AveragePoolOperation& pool, Channels to, int) { pool.channels = to.count(); }
void narrow(gpu::ElementwiseOperation& elementwise, Channels to, int channels) {
  elementwise.values = elementwise.values / channels * to.count();
}
void narrow(gpu::GroupNormOperation& norm, Channels to, int channels) {
  norm.groups = to.count() / (channels / norm.groups);
  norm.channels = to.count();
}
void narrow(gpu::AttentionOperation& attention, Channels to, int) {
  attention.heads = to.count() / (3 * attention.features);
}
template <class Other>
void narrow(Other&, Channels, int) {
  GOSSAMER_CHECK(false, "this layer is never cut");
}

/// Channels of the output of a layer that can be the first of those that are cut together, and the
/// blocks of them between which it can be cut; none for others.
struct Head {
  int channels = 0;
  std::int64_t granule = 1;
};
std::optional<Head> head_of(const LayerVariant& layer) {
  if (const auto* dense = std::get_if<gpu::DenseOperation>(&layer)) return Head{dense->outputs, 1};
  if (const auto* convolution = std::get_if<gpu::ConvolutionOperation>(&layer))
    return Head{convolution->outputs, gpu::kChainChannels};
  return std::nullopt;
}

class Slicer {
 public:
  Slicer(const CompiledModel& model, int slices)
      : model_(model), whole_(model.graph()), slices_(slices), tensor_of_(1, kSamplesTensor) {
    tensor_of_.resize(whole_.layers.size() + 1);
    uses_.resize(whole_.layers.size() + 1);
    for (const GraphLayer& layer : whole_.layers)
      for (const std::size_t input : layer.inputs) ++uses_[input];
    ++uses_[whole_.output];
    for (std::size_t o = 0; o < model.operations().size(); ++o) {
      const CompiledOperation& operation = model.operations()[o];
      operation_of_.resize(operation.first_layer + operation.layers, o);
    }
    sliced_.graph.sample_values = whole_.sample_values;
  }

  SlicedGraph slice(std::span<const std::size_t> stage_begins) {
    for (std::size_t s = 0; s < stage_begins.size(); ++s) {
      const std::size_t end =
          s + 1 < stage_begins.size() ? layer_of(stage_begins[s + 1]) : whole_.layers.size();
      sliced_.stage_begins.push_back(sliced_.graph.layers.size());
      for (std::size_t l = layer_of(stage_begins[s]); l < end;) l = add(l, end);
    }
    sliced_.graph.output = tensor_of_[whole_.output];
    return std::move(sliced_);
  }

 private:
  std::size_t layer_of(std::size_t operation) const {
    return operation < model_.operations().size() ? model_.operations()[operation].first_layer
                                                  : whole_.layers.size();
  }

  /// Adds layer `l` of the whole graph, with those that are cut with it. Returns the next one.
  std::size_t add(std::size_t l, std::size_t end) {
    const auto head = head_of(whole_.layers[l].operation);
    if (slices_ == 1 || !head || blocks_of(*head) < slices_) {
      tensor_of_[l + 1] = push(l, 0, {}, 1);
      return l + 1;
    }
    std::int64_t granule = head->granule;
    std::size_t last = l + 1;
    while (last < end && follows(last)) {
      const std::int64_t own =
          std::visit([&](const auto& op) { return granule_of(op, head->channels); },
                     whole_.layers[last].operation);
      if (own == 0 || blocks_of({head->channels, std::lcm(granule, own)}) < slices_) break;
      granule = std::lcm(granule, own);
      // Behind an attention are other channels.
      if (std::holds_alternative<gpu::AttentionOperation>(whole_.layers[last++].operation)) break;
    }
    cut(l, last, {head->channels, granule});
    return last;
  }

  /// Whether layer `l` takes nothing but the output of the one before, and is alone in that.
  bool follows(std::size_t l) const {
    return whole_.layers[l].inputs == std::vector<std::size_t>{l} && uses_[l] == 1;
  }

  static std::int64_t blocks_of(Head head) {
    return (head.channels + head.granule - 1) / head.granule;
  }

  /// Layers first … last − 1, slice by slice, and the concatenation of what they give.
  void cut(std::size_t first, std::size_t last, Head head) {
    const auto slices = static_cast<std::size_t>(slices_);
    std::vector<std::size_t> heads(slices), ends(slices);
    std::vector<int> channels(slices);
    const auto begin = [&](int k) {
      return static_cast<int>(
          std::min<std::int64_t>(head.channels, head.granule * (blocks_of(head) * k / slices_)));
    };
    for (int k = slices_; k-- > 0;) {
      const auto s = static_cast<std::size_t>(k);
      const Channels own{begin(k), begin(k + 1)};
      heads[s] = sliced_.graph.layers.size();
      for (std::size_t l = first; l < last; ++l) {
        ends[s] = push(l, k, own, head.channels);
        tensor_of_[l + 1] = ends[s];  // for the next layer of the slice
      }
      channels[s] = own.count();
    }
    if (whole_.has_gradient(whole_.layers[first].inputs[0]))
      for (std::size_t s = 0; s < slices; ++s) {
        if (s > 0) sliced_.graph.layers[heads[s]].goes_on_from = heads[s - 1];
        sliced_.graph.layers[heads[s]].ends_chain = s + 1 == slices;
      }
    tensor_of_[last] = concatenate(last - 1, ends, std::move(channels), head.channels);
  }

  std::size_t concatenate(std::size_t last, std::vector<std::size_t> tensors,
                          std::vector<int> channels, int all) {
    const GraphLayer& whole = whole_.layers[last];
    const bool attends = std::holds_alternative<gpu::AttentionOperation>(whole.operation);
    for (int& count : channels) count /= attends ? 3 : 1;
    const int outputs = attends ? all / 3 : all;
    GraphLayer layer;
    layer.operation = gpu::ConcatenateOperation{
        .pixels = static_cast<int>(whole.output_values) / outputs, .channels = std::move(channels)};
    layer.inputs = std::move(tensors);
    layer.output_values = whole.output_values;
    layer.has_gradient = whole.has_gradient;
    sliced_.graph.layers.push_back(std::move(layer));
    sliced_.layers.push_back({.slice = 0, .joins = true});
    return sliced_.graph.layers.size();
  }

  /// Adds slice `slice` of layer `l`, with the channels `own` of `channels`; the whole layer, if
  /// `own` is empty. Returns its output.
  std::size_t push(std::size_t l, int slice, Channels own, int channels) {
    const bool is_whole = own.count() == 0;
    const double share = is_whole ? 1 : static_cast<double>(own.count()) / channels;
    const GraphLayer& whole = whole_.layers[l];
    GraphLayer layer = whole;
    for (std::size_t& input : layer.inputs) input = tensor_of_[input];
    SlicedLayer sliced{.slice = slice};
    for (const std::size_t* offset : parameter_offsets(layer.operation)) {
      const std::size_t b = block_at(*offset);
      const auto columns = static_cast<std::size_t>(model_.blocks()[b].shape.back());
      sliced.blocks.push_back(is_whole ? BlockColumns{b, 0, columns}
                                       : BlockColumns{b, static_cast<std::size_t>(own.first),
                                                      static_cast<std::size_t>(own.count())});
    }
    if (!is_whole) {
      std::visit([&](auto& operation) { narrow(operation, own, channels); }, layer.operation);
      layer.output_values = whole.output_values / static_cast<std::size_t>(channels) *
                            static_cast<std::size_t>(own.count());
      if (std::holds_alternative<gpu::AttentionOperation>(layer.operation))
        layer.output_values = whole.output_values * static_cast<std::size_t>(own.count()) /
                              static_cast<std::size_t>(channels);
    }
    const CompiledOperation& operation = model_.operations()[operation_of_[l]];
    if (operation.first_layer == l) {  // the costs are of the operation, not of its layers
      sliced.forward_flops = share * operation.forward_flops;
      sliced.backward_flops = share * operation.backward_flops;
    }
    sliced_.graph.layers.push_back(std::move(layer));
    sliced_.layers.push_back(std::move(sliced));
    return sliced_.graph.layers.size();
  }

  std::size_t block_at(std::size_t offset) const {
    const auto found =
        std::ranges::lower_bound(model_.blocks(), offset, {}, &ParameterBlock::offset);
    return static_cast<std::size_t>(found - model_.blocks().begin());
  }

  const CompiledModel& model_;
  const LayerGraph& whole_;
  int slices_;
  std::vector<std::size_t> tensor_of_;     // by tensor of the whole graph
  std::vector<int> uses_;                  // likewise
  std::vector<std::size_t> operation_of_;  // by layer of the whole graph
  SlicedGraph sliced_;
};

std::vector<std::size_t*> offsets_of(gpu::DenseOperation& dense) {
  return {&dense.weights, &dense.bias};
}
std::vector<std::size_t*> offsets_of(gpu::ConvolutionOperation& convolution) {
  return {&convolution.weights, &convolution.bias};
}
std::vector<std::size_t*> offsets_of(gpu::GroupNormOperation& norm) {
  return {&norm.scale, &norm.shift};
}
std::vector<std::size_t*> offsets_of(gpu::ElementwiseOperation& elementwise) {
  return {&elementwise.bias};
}
std::vector<std::size_t*> offsets_of(gpu::EmbeddingOperation& embedding) {
  return {&embedding.table};
}
std::vector<std::size_t*> offsets_of(gpu::MaxPoolOperation&) { return {}; }
std::vector<std::size_t*> offsets_of(gpu::AveragePoolOperation&) { return {}; }
std::vector<std::size_t*> offsets_of(gpu::SumOperation&) { return {}; }
std::vector<std::size_t*> offsets_of(gpu::ConcatenateOperation&) { return {}; }
std::vector<std::size_t*> offsets_of(gpu::AttentionOperation&) { return {}; }

}  // namespace

std::vector<std::size_t*> parameter_offsets(LayerVariant& operation) {
  std::vector<std::size_t*> offsets =
      std::visit([](auto& of_kind) { return offsets_of(of_kind); }, operation);
  std::erase_if(offsets, [](const std::size_t* offset) { return *offset == gpu::kNowhere; });
  return offsets;
}

SlicedGraph slice_layers(const CompiledModel& model, std::span<const std::size_t> stage_begins,
                         int slices) {
  return Slicer(model, slices).slice(stage_begins);
}

}  // namespace gossamer::train
