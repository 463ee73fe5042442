#include "train/graph/layer_graph.hpp"

#include <set>

#include "train/graph/gradient_buffers.hpp"

namespace gossamer::train {
namespace {

/// Tensors begin at whole cache lines of the workspace, for floats and doubles alike.
constexpr std::size_t kAlignedValues = 16;

class Planner {
 public:
  Planner(const LayerGraph& graph, LayerRange range, int batch)
      : graph_(graph), range_(range), batch_(static_cast<std::size_t>(batch)) {}

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
  bool has_loss() const { return range_.last == graph_.layers.size(); }
  gpu::LayerOperation& layer(std::size_t l) { return plan_.program.layers[l - range_.first]; }

  std::size_t reserve(std::size_t values) {
    const std::size_t start = used_;
    used_ += (values + kAlignedValues - 1) / kAlignedValues * kAlignedValues;
    return start;
  }
  void place(std::size_t tensor) { plan_.values[tensor] = reserve(graph_.values(tensor) * batch_); }

  void lay_out_values() {
    std::set<std::size_t> taken;  // from outside: the samples first
    for (std::size_t l = range_.first; l < range_.last; ++l)
      for (const std::size_t input : graph_.layers[l].inputs)
        if (input <= range_.first) taken.insert(input);
    for (const std::size_t tensor : taken) place(tensor);
    for (std::size_t l = range_.first; l < range_.last; ++l) {
      const GraphLayer& from = graph_.layers[l];
      gpu::LayerOperation to{.operation = from.operation, .positions = from.positions};
      for (const std::size_t input : from.inputs) to.inputs.push_back({plan_.values.at(input)});
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
  }

  std::size_t take(std::size_t tensor) {
    gradients_[tensor].push_back(buffers_.take(graph_.values(tensor) * batch_));
    return gradients_[tensor].back();
  }

  /// Gradients from layers behind the range, for which there is no buffer yet: the last use first.
  void take_gradients_from_behind() {
    for (std::size_t l = graph_.layers.size(); l-- > range_.last;)
      for (std::size_t i = graph_.layers[l].inputs.size(); i-- > 0;)
        if (const std::size_t tensor = graph_.layers[l].inputs[i];
            tensor > range_.first && tensor <= range_.last && graph_.has_gradient(tensor))
          plan_.gradients_in[{l, i}] = take(tensor);
  }

  /// The gradient of a tensor for each layer that takes it, and for the loss, has a buffer of its
  /// own from that layer's backward pass to that of the layer whose output it is. Offsets are
  /// numbers of buffers until the buffers have their sizes.
  void lay_out_gradients() {
    if (has_loss()) take(graph_.output);
    else take_gradients_from_behind();
    for (std::size_t l = range_.last; l-- > range_.first;) {
      if (!graph_.layers[l].has_gradient) continue;
      const std::vector<std::size_t>& own = gradients_[l + 1];
      layer(l).output_gradients.assign(own.rbegin(), own.rend());
      for (std::size_t i = layer(l).inputs.size(); i-- > 0;) {
        const std::size_t input = graph_.layers[l].inputs[i];
        if (!graph_.has_gradient(input)) continue;
        layer(l).inputs[i].gradient = take(input);
        if (input <= range_.first) plan_.gradients_out[{l, i}] = layer(l).inputs[i].gradient;
      }
      for (const std::size_t buffer : gradients_[l + 1]) buffers_.give(buffer);
    }
    place_buffers();
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
        if (input.gradient != gpu::kNowhere) input.gradient = offsets[input.gradient];
    }
    for (auto* crossing : {&plan_.gradients_in, &plan_.gradients_out})
      for (auto& [use, buffer] : *crossing) buffer = offsets[buffer];
  }

  const LayerGraph& graph_;
  LayerRange range_;
  std::size_t batch_;
  std::size_t used_ = 0;
  GradientBuffers buffers_;
  std::map<std::size_t, std::vector<std::size_t>> gradients_;  // by tensor, the last use first
  WorkspaceLayout plan_;
};

}  // namespace

WorkspaceLayout lay_out(const LayerGraph& graph, LayerRange range, int batch) {
  return Planner(graph, range, batch).plan();
}

}  // namespace gossamer::train
