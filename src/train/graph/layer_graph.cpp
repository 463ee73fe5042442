#include "train/graph/layer_graph.hpp"

#include <set>

#include "train/graph/gradient_buffers.hpp"

namespace gossamer::train {
namespace {

/// Tensors begin at whole cache lines of the workspace, for floats and doubles alike.
constexpr std::size_t kAlignedValues = 16;

class Planner {
 public:
  Planner(const LayerGraph& graph, std::span<const LayerRange> ranges, int batch)
      : graph_(graph),
        ranges_(ranges),
        batch_(static_cast<std::size_t>(batch)),
        place_(graph.layers.size(), kElsewhere) {
    for (const LayerRange range : ranges)
      for (std::size_t l = range.first; l < range.last; ++l) place_[l] = own_++;
  }

  WorkspaceLayout plan() {
    lay_out_values();
    lay_out_gradients();
    gpu::Program& program = plan_.program;
    program.takes_samples = plan_.values.contains(kSamplesTensor);
    program.has_loss = has_loss();
    program.outputs = static_cast<int>(graph_.values(graph_.output));
    program.batch = static_cast<int>(batch_);
    program.workspace = used_;
    return std::move(plan_);
  }

 private:
  static constexpr std::size_t kElsewhere = kNoLayer;

  bool has_loss() const { return ranges_.back().last == graph_.layers.size(); }
  bool makes(std::size_t tensor) const {
    return tensor != kSamplesTensor && place_[tensor - 1] != kElsewhere;
  }
  gpu::LayerOperation& layer(std::size_t l) { return plan_.program.layers[place_[l]]; }

  std::size_t reserve(std::size_t values) {
    const std::size_t start = used_;
    used_ += (values + kAlignedValues - 1) / kAlignedValues * kAlignedValues;
    return start;
  }
  void place(std::size_t tensor) { plan_.values[tensor] = reserve(graph_.values(tensor) * batch_); }

  void lay_out_values() {
    std::set<std::size_t> taken;  // from outside: the samples first
    for (const LayerRange range : ranges_)
      for (std::size_t l = range.first; l < range.last; ++l)
        for (const std::size_t input : graph_.layers[l].inputs)
          if (!makes(input)) taken.insert(input);
    for (const std::size_t tensor : taken) place(tensor);
    for (const LayerRange range : ranges_)
      for (std::size_t l = range.first; l < range.last; ++l) add_layer(l);
  }

  void add_layer(std::size_t l) {
    const GraphLayer& from = graph_.layers[l];
    gpu::LayerOperation to{.operation = from.operation, .positions = from.positions};
    for (const std::size_t input : from.inputs)
      to.inputs.push_back({.value = plan_.values.at(input), .values = graph_.values(input)});
    const std::size_t before = used_;
    place(l + 1);
    to.output = plan_.values.at(l + 1);
    to.output_values = from.output_values;
    const int samples = static_cast<int>(batch_) * to.positions;
    to.scratch = reserve(
        std::visit([&](const auto& operation) { return gpu::scratch_values(operation, samples); },
                   to.operation));
    plan_.layer_values.push_back(used_ - before);
    plan_.program.layers.push_back(std::move(to));
  }

  std::size_t take(std::size_t tensor) { return buffers_.take(graph_.values(tensor) * batch_); }

  /// Gradients from layers elsewhere whose backward passes are between those of range `r` and of
  /// the one behind it: they come when that one is done.
  void take_gradients_before(std::size_t r) {
    const std::size_t end = r + 1 < ranges_.size() ? ranges_[r + 1].first : graph_.layers.size();
    for (std::size_t l = end; l-- > ranges_[r].last;) {
      if (!graph_.layers[l].ends_chain) continue;
      for (std::size_t i = graph_.layers[l].inputs.size(); i-- > 0;)
        if (const std::size_t tensor = graph_.layers[l].inputs[i];
            makes(tensor) && graph_.has_gradient(tensor))
          plan_.gradients_in[{l, i}] = gradients_[tensor][{l, i}] = take(tensor);
    }
    for (std::size_t l = ranges_[r].first; l < ranges_[r].last; ++l)
      if (const std::size_t from = graph_.layers[l].goes_on_from; from != kNoLayer)
        layer(l).inputs[0].begun_gradient = plan_.gradients_in[{from, 0}] =
            take(graph_.layers[l].inputs[0]);
  }

  /// The gradient of a tensor for each layer that takes it, and for the loss, has a buffer of its
  /// own from that layer's backward pass to that of the layer whose output it is. Offsets are
  /// numbers of buffers until the buffers have their sizes.
  void lay_out_gradients() {
    if (has_loss()) gradients_[graph_.output][{graph_.layers.size(), 0}] = take(graph_.output);
    for (std::size_t r = ranges_.size(); r-- > 0;) {
      take_gradients_before(r);
      std::vector<std::size_t> sent;
      for (std::size_t l = ranges_[r].last; l-- > ranges_[r].first;)
        if (graph_.layers[l].has_gradient) lay_out_gradients_of(l, sent);
      for (const std::size_t buffer : sent) buffers_.give(buffer);
    }
    place_buffers();
  }

  /// `sent`: those that go elsewhere at the end of the range are added.
  void lay_out_gradients_of(std::size_t l, std::vector<std::size_t>& sent) {
    const GraphLayer& from = graph_.layers[l];
    for (const auto& [use, buffer] : gradients_[l + 1]) layer(l).output_gradients.push_back(buffer);
    for (std::size_t i = from.inputs.size(); i-- > 0;) {
      const std::size_t input = from.inputs[i];
      if (!graph_.has_gradient(input)) continue;
      const std::size_t buffer = layer(l).inputs[i].gradient = take(input);
      if (makes(input) && from.ends_chain) {
        gradients_[input][{l, i}] = buffer;
      } else {
        plan_.gradients_out[{l, i}] = buffer;
        sent.push_back(buffer);
      }
    }
    for (const auto& [use, buffer] : gradients_[l + 1]) buffers_.give(buffer);
    if (from.goes_on_from != kNoLayer) buffers_.give(layer(l).inputs[0].begun_gradient);
  }

  void place_buffers() {
    const std::size_t begin = used_;
    std::vector<std::size_t> offsets;
    for (std::size_t b = 0; b < buffers_.count(); ++b)
      offsets.push_back(reserve(buffers_.values(b)));
    plan_.gradient_values = used_ - begin;
    for (gpu::LayerOperation& layer : plan_.program.layers) {
      for (std::size_t& gradient : layer.output_gradients) gradient = offsets[gradient];
      for (gpu::LayerInput& input : layer.inputs)
        for (std::size_t* gradient : {&input.gradient, &input.begun_gradient})
          if (*gradient != gpu::kNowhere) *gradient = offsets[*gradient];
    }
    for (auto* crossing : {&plan_.gradients_in, &plan_.gradients_out})
      for (auto& [use, buffer] : *crossing) buffer = offsets[buffer];
  }

  const LayerGraph& graph_;
  std::span<const LayerRange> ranges_;
  std::size_t batch_;
  std::vector<std::size_t> place_;  // by layer: in the program
  std::size_t own_ = 0;
  std::size_t used_ = 0;
  GradientBuffers buffers_;
  std::map<std::size_t, std::map<TensorUse, std::size_t>> gradients_;  // by tensor made here
  WorkspaceLayout plan_;
};

}  // namespace

WorkspaceLayout lay_out(const LayerGraph& graph, std::span<const LayerRange> ranges, int batch) {
  return Planner(graph, ranges, batch).plan();
}

}  // namespace gossamer::train
