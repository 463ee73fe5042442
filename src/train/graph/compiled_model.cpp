#include "train/graph/compiled_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "train/graph/gradient_buffers.hpp"

namespace gossamer::train {
namespace {

/// Tensors begin at whole cache lines of the workspace, for floats and doubles alike.
constexpr std::size_t kAlignedValues = 16;

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

constexpr std::size_t kSamplesTensor = 0;

/// The samples, or the output of a layer. Outputs of reshapes are the tensors that they reshape.
struct Tensor {
  std::size_t value = 0;   ///< in the workspace
  std::size_t values = 0;  ///< of a sample
  bool has_gradient = false;
  std::vector<std::size_t> gradients = {};  ///< numbers of buffers, the last use first
};

}  // namespace

/// Walks through the operations forwards, which lays out the row and the values, and backwards,
/// which lays out the gradients.
class Compiler {
 public:
  Compiler(const ModelContext& data, int batch) : batch_(batch) {
    program().channels = data.channels;
    program().pixels = data.height * data.width;
    program().batch = batch;
    samples_ = {data.height, data.width, data.channels};
    tensors_.push_back(new_tensor(samples_.values()));
  }

  Status add(const Operation& operation, bool is_last) {
    std::vector<Shape> shapes;
    std::vector<std::size_t> inputs;
    for (const int input : operation.inputs) {
      shapes.push_back(input == kSampleInput ? samples_ : shape_of(input));
      inputs.push_back(input == kSampleInput ? kSamplesTensor
                                             : tensor_of_[static_cast<std::size_t>(input)]);
    }
    if (std::holds_alternative<Embedding>(operation.op) && inputs[0] != kSamplesTensor)
      return refuse(operation,
                    "its input are no tokens; an embedding takes the samples, directly or through "
                    "reshapes");
    const std::size_t blocks_before = parameters_.blocks().size();
    auto lowered = lower(operation, shapes, parameters_);
    if (!lowered.ok()) return refuse(operation, lowered.error().message);
    const std::span<ParameterBlock> blocks = parameters_.from(blocks_before);
    const auto* dense = std::get_if<Dense>(&operation.op);
    for (ParameterBlock& block : blocks) {
      block.takes_samples = dense != nullptr && !dense->per_position && inputs[0] == kSamplesTensor;
      block.gives_outputs = dense != nullptr && dense->activation == Activation::none && is_last;
    }
    GOSSAMER_TRY_STATUS(check_size(operation, lowered->output, blocks));
    CompiledOperation& compiled = model_.operations_.emplace_back();
    static_cast<Operation&>(compiled) = operation;
    compiled.output = lowered->output;
    compiled.first_block = blocks_before;
    compiled.blocks = blocks.size();
    compiled.forward_flops = lowered->forward_flops;
    for (const ParameterBlock& block : blocks) compiled.parameters += block.length;
    bool wants_input_gradient = false;
    for (const std::size_t input : inputs)
      wants_input_gradient = wants_input_gradient || tensors_[input].has_gradient;
    if (!blocks.empty()) compiled.backward_flops += lowered->parameter_gradient_flops;
    if (wants_input_gradient) compiled.backward_flops += lowered->input_gradient_flops;
    const std::size_t used_before = used_;
    for (LoweredLayer& layer : lowered->layers)
      inputs = {add_layer(std::move(layer), inputs, compiled.output.values(),
                          wants_input_gradient || !blocks.empty())};
    compiled.memory_values = used_ - used_before;
    tensor_of_.push_back(inputs[0]);
    return {};
  }

  CompiledModel finish(Loss loss) {
    lay_out_gradients();
    program().loss = loss;
    program().outputs = static_cast<int>(outputs());
    program().parameters = parameters_.values();
    program().workspace = used_;
    model_.blocks_ = parameters_.blocks();
    return std::move(model_);
  }

  std::size_t outputs() const { return model_.operations_.back().output.values(); }
  bool has_parameters() const { return parameters_.values() > 0; }

 private:
  gpu::Program& program() { return model_.program_; }
  const Shape& shape_of(int operation) const {
    return model_.operations_[static_cast<std::size_t>(operation)].output;
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

  std::size_t reserve(std::size_t values) {
    const std::size_t start = used_;
    used_ += (values + kAlignedValues - 1) / kAlignedValues * kAlignedValues;
    return start;
  }
  Tensor new_tensor(std::size_t values) {
    return {.value = reserve(values * static_cast<std::size_t>(batch_)), .values = values};
  }

  /// Returns the number of the layer's output among the tensors.
  std::size_t add_layer(LoweredLayer layer, const std::vector<std::size_t>& inputs,
                        std::size_t output_values, bool has_gradient) {
    gpu::LayerOperation to{.operation = std::move(layer.operation), .positions = layer.positions};
    for (const std::size_t input : inputs) to.inputs.push_back({tensors_[input].value});
    tensors_.push_back(new_tensor(output_values));
    tensors_.back().has_gradient = has_gradient;
    to.output = tensors_.back().value;
    to.output_values = output_values;
    const int samples = batch_ * to.positions;
    to.scratch = reserve(
        std::visit([&](const auto& operation) { return gpu::scratch_values(operation, samples); },
                   to.operation));
    program().layers.push_back(std::move(to));
    layer_inputs_.push_back(inputs);
    return tensors_.size() - 1;
  }

  /// The gradient of a tensor for each layer that takes it, and for the loss, has a buffer of its
  /// own from that layer's backward pass to that of the layer whose output it is.
  void lay_out_gradients() {
    GradientBuffers buffers;
    const auto take = [&](Tensor& tensor) {
      tensor.gradients.push_back(buffers.take(tensor.values * static_cast<std::size_t>(batch_)));
      return tensor.gradients.back();
    };
    take(tensors_[tensor_of_.back()]);  // the loss's
    // Layer l has the output l + 1. Offsets of gradients are numbers of buffers for now.
    for (std::size_t l = program().layers.size(); l-- > 0;) {
      gpu::LayerOperation& layer = program().layers[l];
      Tensor& output = tensors_[l + 1];
      if (!output.has_gradient) continue;
      layer.output_gradients.assign(output.gradients.rbegin(), output.gradients.rend());
      for (std::size_t i = layer.inputs.size(); i-- > 0;)
        if (Tensor& input = tensors_[layer_inputs_[l][i]]; input.has_gradient)
          layer.inputs[i].gradient = take(input);
      for (const std::size_t buffer : output.gradients) buffers.give(buffer);
    }
    const std::size_t begin = used_;
    std::vector<std::size_t> offsets;
    for (std::size_t b = 0; b < buffers.count(); ++b) offsets.push_back(reserve(buffers.values(b)));
    model_.gradient_values_ = used_ - begin;
    for (gpu::LayerOperation& layer : program().layers) {
      for (std::size_t& gradient : layer.output_gradients) gradient = offsets[gradient];
      for (gpu::LayerInput& input : layer.inputs)
        if (input.gradient != gpu::kNowhere) input.gradient = offsets[input.gradient];
    }
  }

  int batch_;
  Shape samples_;
  std::size_t used_ = 0;
  std::vector<Tensor> tensors_;                         // the samples, then the layers' outputs
  std::vector<std::size_t> tensor_of_;                  // by operation: its output
  std::vector<std::vector<std::size_t>> layer_inputs_;  // by layer: tensors
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
                                             int batch) {
  GOSSAMER_CHECK(batch >= 1 && data.channels >= 1 && data.height >= 1 && data.width >= 1,
                 "a network has inputs");
  GOSSAMER_TRY(const ModelSpec in_order, ordered(spec));
  const double values = static_cast<double>(data.channels) * data.height * data.width;
  if (values * batch > kMostValues)
    return invalid_error(
        fmt::format("model: samples of {} values, batch {}: too large", values, batch));
  Compiler compiler(data, batch);
  for (const Operation& operation : in_order.operations)
    GOSSAMER_TRY_STATUS(compiler.add(operation, &operation == &in_order.operations.back()));
  GOSSAMER_TRY_STATUS(check_output(in_order, compiler, data));
  return compiler.finish(in_order.loss);
}

template <class Real>
void CompiledModel::initialise(std::uint64_t seed, std::uint32_t stream,
                               std::span<Real> row) const {
  GOSSAMER_CHECK(row.size() == parameters(), "a row holds the network's parameters");
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const ParameterBlock& block = blocks_[b];
    RandomStream random(seed, stream, Purpose::initial_parameters, b);
    const double deviation = std::sqrt(2.0 / static_cast<double>(block.fan_in));
    const double limit = std::sqrt(6.0 / static_cast<double>(block.fan_in + block.fan_out));
    for (Real& value : row.subspan(block.offset, block.length)) switch (block.start) {
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
template void CompiledModel::initialise(std::uint64_t, std::uint32_t, std::span<float>) const;
template void CompiledModel::initialise(std::uint64_t, std::uint32_t, std::span<double>) const;

}  // namespace gossamer::train
