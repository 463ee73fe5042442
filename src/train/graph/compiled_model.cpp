#include "train/graph/compiled_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "base/check.hpp"

namespace gossamer::train {
namespace {

/// Most values of one tensor: sizes within a layer are 32-bit.
constexpr double kMostValues = 1e9;
/// Most values of a tensor of parameters, whose sizes are 64-bit.
constexpr double kMostParameters = 1e12;

bool is_too_large(const ParameterBlock& block) {
  double length = 1;  // block.length may have overflowed
  for (const int extent : block.shape) length *= extent;
  return length > kMostParameters;
}

constexpr double kEmbeddingDeviation = 0.02;

}  // namespace

/// Lowers operation after operation: the layers, and the layout of the row.
class Compiler {
 public:
  Compiler(const ModelContext& data, int batch, bool sample_gradient)
      : data_(data), batch_(batch), samples_{data.height, data.width, data.channels} {
    graph().sample_values = samples_.values();
    graph().sample_gradient = sample_gradient;
  }

  Status add(const Operation& operation, bool is_last) {
    std::vector<Shape> shapes;
    std::vector<std::size_t> inputs;
    bool wants_input_gradient = false;
    for (const int input : operation.inputs) {
      shapes.push_back(input == kSampleInput ? samples_ : shape_of(input));
      inputs.push_back(input == kSampleInput ? kSamplesTensor
                                             : tensor_of_[static_cast<std::size_t>(input)]);
      wants_input_gradient = wants_input_gradient || graph().has_gradient(inputs.back());
    }
    if (std::holds_alternative<Embedding>(operation.op) && inputs[0] != kSamplesTensor)
      return refuse(operation,
                    "its input are no tokens; an embedding takes the samples, directly or through "
                    "reshapes");
    if (std::holds_alternative<Embedding>(operation.op) && graph().sample_gradient)
      return refuse(operation, "it takes tokens, in which the loss has no gradient");
    const std::size_t blocks_before = parameters_.blocks().size();
    auto lowered = lower(operation, shapes, parameters_);
    if (!lowered.ok()) return refuse(operation, lowered.error().message);
    const std::span<ParameterBlock> blocks = parameters_.from(blocks_before);
    mark_ends(operation, inputs[0], is_last, blocks);
    GOSSAMER_TRY_STATUS(check_size(operation, lowered->output, blocks));

    CompiledOperation& compiled = model_.operations_.emplace_back();
    static_cast<Operation&>(compiled) = operation;
    compiled.output = lowered->output;
    compiled.first_layer = graph().layers.size();
    compiled.layers = lowered->layers.size();
    compiled.first_block = blocks_before;
    compiled.blocks = blocks.size();
    compiled.forward_flops = lowered->forward_flops;
    for (const ParameterBlock& block : blocks) compiled.parameters += block.length;
    if (!blocks.empty()) compiled.backward_flops += lowered->parameter_gradient_flops;
    if (wants_input_gradient) compiled.backward_flops += lowered->input_gradient_flops;
    for (LoweredLayer& layer : lowered->layers) {
      graph().layers.push_back({std::move(layer), std::move(inputs), compiled.output.values(),
                                wants_input_gradient || !blocks.empty()});
      inputs = {graph().layers.size()};
    }
    tensor_of_.push_back(inputs[0]);
    return {};
  }

  CompiledModel finish(Loss loss) {
    graph().output = tensor_of_.back();
    const LayerRange all{0, graph().layers.size()};
    WorkspaceLayout layout = lay_out(graph(), std::span(&all, 1), batch_);
    for (CompiledOperation& operation : model_.operations_)
      for (std::size_t l = 0; l < operation.layers; ++l)
        operation.memory_values += layout.layer_values[operation.first_layer + l];
    gpu::Program& program = model_.program_ = std::move(layout.program);
    program.loss = loss;
    program.channels = data_.channels;
    program.pixels = data_.height * data_.width;
    program.parameters = parameters_.values();
    model_.gradient_values_ = layout.gradient_values;
    model_.blocks_ = parameters_.blocks();
    return std::move(model_);
  }

  std::size_t outputs() const { return model_.operations_.back().output.values(); }
  bool has_parameters() const { return parameters_.values() > 0; }

 private:
  LayerGraph& graph() { return model_.graph_; }
  const Shape& shape_of(int operation) const {
    return model_.operations_[static_cast<std::size_t>(operation)].output;
  }

  static void mark_ends(const Operation& operation, std::size_t input, bool is_last,
                        std::span<ParameterBlock> blocks) {
    const auto* dense = std::get_if<Dense>(&operation.op);
    if (dense == nullptr) return;
    for (ParameterBlock& block : blocks) {
      block.takes_samples = !dense->per_position && input == kSamplesTensor;
      block.gives_outputs = dense->activation == Activation::none && is_last;
    }
  }

  static Status refuse(const Operation& operation, const std::string& why) {
    return invalid_error(fmt::format("model: operation '{}': {}", operation.name, why));
  }
  Status check_size(const Operation& operation, const Shape& output,
                    std::span<const ParameterBlock> blocks) const {
    for (const ParameterBlock& block : blocks)
      if (is_too_large(block))
        return refuse(operation,
                      fmt::format("{} parameters are too many", fmt::join(block.shape, " × ")));
    if (static_cast<double>(output.values()) * batch_ > kMostValues)
      return refuse(operation, fmt::format("{} values a sample, batch {}: too large",
                                           output.values(), batch_));
    return {};
  }

  ModelContext data_;
  int batch_;
  Shape samples_;
  std::vector<std::size_t> tensor_of_;  // by operation: its output
  ParameterLayout parameters_;
  CompiledModel model_;
};

namespace {

Status check_output(const ModelSpec& spec, const Compiler& compiler, const ModelContext& data) {
  const bool classifies = spec.loss == Loss::softmax_cross_entropy;
  if (classifies != (data.classes > 0))
    return invalid_error(classifies
                             ? "model: it classifies, but the data have a target to regress on"
                             : "model: it regresses on a target, but the data have classes");
  const std::size_t wanted = classifies ? static_cast<std::size_t>(data.classes) : 1;
  if (compiler.outputs() != wanted)
    return invalid_error(
        fmt::format("model: the last operation '{}' gives {} values, but {} are "
                    "wanted",
                    spec.operations.back().name, compiler.outputs(), wanted));
  if (!compiler.has_parameters()) return invalid_error("model: no operation has parameters");
  return {};
}

}  // namespace

Result<CompiledModel> CompiledModel::compile(const ModelSpec& spec, const ModelContext& data,
                                             int batch, bool sample_gradient) {
  GOSSAMER_CHECK(batch >= 1 && data.channels >= 1 && data.height >= 1 && data.width >= 1,
                 "a network has inputs");
  GOSSAMER_TRY(const ModelSpec in_order, ordered(spec));
  const double values = static_cast<double>(data.channels) * data.height * data.width;
  if (values * batch > kMostValues)
    return invalid_error(
        fmt::format("model: samples of {} values, batch {}: too large", values, batch));
  Compiler compiler(data, batch, sample_gradient);
  for (const Operation& operation : in_order.operations)
    GOSSAMER_TRY_STATUS(compiler.add(operation, &operation == &in_order.operations.back()));
  GOSSAMER_TRY_STATUS(check_output(in_order, compiler, data));
  return compiler.finish(in_order.loss);
}

template <class Real>
void CompiledModel::initialise(std::uint64_t seed, std::uint32_t stream, std::span<Real> part,
                               std::size_t begin) const {
  GOSSAMER_CHECK(begin + part.size() <= parameters(), "a row holds the network's parameters");
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const ParameterBlock& block = blocks_[b];
    if (block.offset < begin || block.offset >= begin + part.size()) continue;
    RandomStream random(seed, stream, Purpose::initial_parameters, b);
    const double deviation = std::sqrt(2.0 / static_cast<double>(block.fan_in));
    const double limit = std::sqrt(6.0 / static_cast<double>(block.fan_in + block.fan_out));
    for (Real& value : part.subspan(block.offset - begin, block.length)) switch (block.start) {
        case ParameterBlock::Start::zero: value = 0; break;
        case ParameterBlock::Start::one: value = 1; break;
        case ParameterBlock::Start::he_normal:
          value = static_cast<Real>(deviation * random.next_normal());
          break;
        case ParameterBlock::Start::glorot_uniform:
          value = static_cast<Real>(limit * (2 * random.next_double() - 1));
          break;
        case ParameterBlock::Start::embedding:
          value = static_cast<Real>(kEmbeddingDeviation * random.next_normal());
          break;
      }
  }
}
template void CompiledModel::initialise(std::uint64_t, std::uint32_t, std::span<float>,
                                        std::size_t) const;
template void CompiledModel::initialise(std::uint64_t, std::uint32_t, std::span<double>,
                                        std::size_t) const;

}  // namespace gossamer::train
