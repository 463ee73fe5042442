#include "train/compiled_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace gossamer::train {
namespace {

/// Tensors begin at whole cache lines of the workspace, for floats and doubles alike.
constexpr std::size_t kAlignedValues = 16;

/// Most values of one tensor: sizes within a layer are 32-bit.
constexpr double kMostValues = 1e9;

/// Walks through the layers once, tracking the shape, and lays out the row and the workspace.
class Compiler {
 public:
  Compiler(const ModelContext& data, int batch)
      : batch_(batch), height_(data.height), width_(data.width), channels_(data.channels) {
    program_.channels = data.channels;
    program_.pixels = data.height * data.width;
    program_.batch = batch;
    output_ = reserve(values() * static_cast<std::size_t>(batch));
  }

  Status add(const Layer& layer) {
    number_ = program_.layers.size();
    const double before = static_cast<double>(values());
    gpu::LayerOperation operation;
    operation.input = output_;
    const Status status =
        std::visit([&](const auto& kind) { return shape(kind, operation); }, layer);
    if (!status.ok())
      return invalid_error(fmt::format("model: layer {}: {}", number_ + 1, status.error().message));
    if (std::max(before, static_cast<double>(values())) * batch_ > kMostValues)
      return invalid_error(fmt::format("model: layer {}: {} values a sample, batch {}: too large",
                                       number_ + 1, values(), batch_));
    operation.output = output_ = reserve(values() * static_cast<std::size_t>(batch_));
    operation.scratch = reserve(std::visit(
        [&](const auto& kind) { return gpu::scratch_values(kind, batch_); }, operation.operation));
    program_.layers.push_back(std::move(operation));
    return {};
  }

  /// Lays out the gradients of the activations: two alternating buffers, so that little memory is
  /// touched.
  gpu::Program finish(Loss loss) {
    std::size_t largest = 0;
    for (std::size_t size : sizes_) largest = std::max(largest, size);
    const std::size_t buffers[2] = {reserve(largest), reserve(largest)};
    for (std::size_t i = 0; i < program_.layers.size(); ++i) {
      program_.layers[i].output_gradient = buffers[i % 2];
      program_.layers[i].input_gradient = i == 0 ? gpu::kNowhere : buffers[(i + 1) % 2];
    }
    program_.loss = loss;
    program_.outputs = static_cast<int>(values());
    program_.parameters = blocks_.empty() ? 0 : blocks_.back().offset + blocks_.back().length;
    program_.workspace = used_;
    return program_;
  }

  std::vector<ParameterBlock> take_blocks() { return std::move(blocks_); }
  std::size_t values() const {
    return static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_) *
           static_cast<std::size_t>(channels_);
  }

 private:
  std::size_t reserve(std::size_t values) {
    const std::size_t start = used_;
    used_ += (values + kAlignedValues - 1) / kAlignedValues * kAlignedValues;
    sizes_.push_back(values);
    return start;
  }

  std::size_t block(const char* name, std::vector<int> shape, ParameterBlock::Start start,
                    std::int64_t fan_in = 0, std::int64_t fan_out = 0) {
    ParameterBlock block{.name = fmt::format("{}.{}", number_, name),
                         .shape = std::move(shape),
                         .start = start,
                         .fan_in = fan_in,
                         .fan_out = fan_out};
    block.offset = blocks_.empty() ? 0 : blocks_.back().offset + blocks_.back().length;
    block.length = 1;
    for (int extent : block.shape) block.length *= static_cast<std::size_t>(extent);
    blocks_.push_back(std::move(block));
    return blocks_.back().offset;
  }

  static ParameterBlock::Start weights_start(Activation activation) {
    return activation == Activation::relu ? ParameterBlock::Start::he_normal
                                          : ParameterBlock::Start::glorot_uniform;
  }

  static Error invalid(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

  Status shape(const Dense& dense, gpu::LayerOperation& to) {
    if (dense.units < 1) return invalid("a dense layer needs at least one unit");
    const int inputs = static_cast<int>(values()), units = dense.units;
    gpu::DenseOperation operation{
        .inputs = inputs, .outputs = units, .activation = dense.activation};
    operation.weights =
        block("dense.weights", {inputs, units}, weights_start(dense.activation), inputs, units);
    if (dense.bias) operation.bias = block("dense.bias", {units}, ParameterBlock::Start::zero);
    to.operation = operation;
    height_ = width_ = 1, channels_ = units;
    return {};
  }

  Status shape(const Convolution& layer, gpu::LayerOperation& to) {
    if (layer.channels < 1 || layer.kernel < 1 || layer.padding < 0)
      return invalid(
          "a convolution needs channels and a kernel of at least 1, and a padding of at least 0");
    if (layer.padding >= layer.kernel)
      return invalid(fmt::format("padding {} reaches past kernel {}", layer.padding, layer.kernel));
    gpu::ConvolutionOperation operation{.height = height_,
                                        .width = width_,
                                        .channels = channels_,
                                        .outputs = layer.channels,
                                        .kernel = layer.kernel,
                                        .padding = layer.padding,
                                        .activation = layer.activation};
    if (operation.output_height() < 1 || operation.output_width() < 1)
      return invalid(
          fmt::format("a {0} × {0} kernel with padding {1} does not fit an image of {2} × {3}",
                      layer.kernel, layer.padding, height_, width_));
    const std::int64_t taps = std::int64_t{layer.kernel} * layer.kernel;
    // A convolution is followed by relu, directly or after its group norm.
    operation.weights =
        block("convolution.weights", {layer.kernel, layer.kernel, channels_, layer.channels},
              layer.activation == Activation::tanh ? ParameterBlock::Start::glorot_uniform
                                                   : ParameterBlock::Start::he_normal,
              taps * channels_, taps * layer.channels);
    operation.bias = block("convolution.bias", {layer.channels}, ParameterBlock::Start::zero);
    to.operation = operation;
    height_ = operation.output_height(), width_ = operation.output_width(),
    channels_ = layer.channels;
    return {};
  }

  Status shape(const MaxPool& layer, gpu::LayerOperation& to) {
    if (layer.size < 1) return invalid("a pool needs a window of at least 1");
    if (layer.size > height_ || layer.size > width_)
      return invalid(fmt::format("a {0} × {0} pool does not fit an image of {1} × {2}", layer.size,
                                 height_, width_));
    to.operation = gpu::MaxPoolOperation{
        .height = height_, .width = width_, .channels = channels_, .size = layer.size};
    height_ /= layer.size, width_ /= layer.size;
    return {};
  }

  Status shape(const GroupNorm& layer, gpu::LayerOperation& to) {
    if (layer.groups < 1 || channels_ % layer.groups != 0)
      return invalid(fmt::format("{} groups do not divide {} channels", layer.groups, channels_));
    gpu::GroupNormOperation operation{.pixels = height_ * width_,
                                      .channels = channels_,
                                      .groups = layer.groups,
                                      .activation = layer.activation};
    operation.scale = block("norm.scale", {channels_}, ParameterBlock::Start::one);
    operation.shift = block("norm.shift", {channels_}, ParameterBlock::Start::zero);
    to.operation = operation;
    return {};
  }

  int batch_, height_, width_, channels_;
  std::size_t number_ = 0, output_ = 0, used_ = 0;
  std::vector<std::size_t> sizes_;
  gpu::Program program_;
  std::vector<ParameterBlock> blocks_;
};

}  // namespace

Result<CompiledModel> CompiledModel::compile(const ModelSpec& spec, const ModelContext& data,
                                             int batch) {
  GOSSAMER_CHECK(batch >= 1 && data.channels >= 1 && data.height >= 1 && data.width >= 1,
                 "a network has inputs");
  if (spec.layers.empty()) return invalid_error("model: no layers");
  Compiler compiler(data, batch);
  for (const Layer& layer : spec.layers) GOSSAMER_TRY_STATUS(compiler.add(layer));
  const bool classifies = spec.loss == Loss::softmax_cross_entropy;
  const std::size_t wanted = classifies ? static_cast<std::size_t>(data.classes) : 1;
  if (classifies != (data.classes > 0))
    return invalid_error(classifies
                             ? "model: it classifies, but the data have a target to regress on"
                             : "model: it regresses on a target, but the data have classes");
  if (compiler.values() != wanted)
    return invalid_error(fmt::format("model: the last layer gives {} values, but {} are wanted",
                                     compiler.values(), wanted));
  CompiledModel network;
  network.program_ = compiler.finish(spec.loss);
  network.blocks_ = compiler.take_blocks();
  return network;
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
      }
  }
}
template void CompiledModel::initialise(std::uint64_t, std::uint32_t, std::span<float>) const;
template void CompiledModel::initialise(std::uint64_t, std::uint32_t, std::span<double>) const;

}  // namespace gossamer::train
