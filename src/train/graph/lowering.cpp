#include "train/graph/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::train {
namespace {

using Start = ParameterBlock::Start;

constexpr std::int64_t kMostChannels = 1'000'000'000;
constexpr int kMostGroups = 65535;                   // blocks of a GPU in one direction
constexpr int kMostNormChannels = 2'000'000;         // likewise, of 32 channels each
constexpr int kMostConvolutionChannels = 4'000'000;  // likewise, of 64 channels each
/// Most values of a convolution's weights, and of a tensor that an operator makes for one sample
/// beside its output: their sizes are 32-bit.
constexpr double kMostScratch = 1e9;

Error invalid(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

/// Lowers one operation: an overload for each operator.
class Lowering {
 public:
  Lowering(const Operation& operation, std::span<const Shape> inputs, ParameterLayout& parameters)
      : name_(operation.name), inputs_(inputs), parameters_(parameters) {}

  Status lower(const Dense& dense) {
    if (dense.units < 1) return invalid("a dense operation needs at least one unit");
    const Shape in = input();
    const int positions = dense.per_position ? in.positions() : 1;
    const int inputs = dense.per_position ? in.channels : static_cast<int>(in.values());
    gpu::DenseOperation operation{.inputs = inputs, .outputs = dense.units};
    operation.weights = block("weights", {inputs, dense.units}, weights_start(dense.activation),
                              inputs, dense.units);
    if (dense.bias) operation.bias = block("bias", {dense.units}, Start::zero);
    result.output = dense.per_position ? Shape{in.height, in.width, dense.units}
                                       : Shape{.channels = dense.units};
    add_products(2.0 * positions * inputs * dense.units);
    return add_activated(operation, dense.activation, positions);
  }

  Status lower(const Convolution& layer) {
    if (layer.channels < 1 || layer.kernel < 1 || layer.padding < 0)
      return invalid(
          "a convolution needs channels and a kernel of at least 1, and a padding of at least 0");
    if (layer.padding >= layer.kernel)
      return invalid(fmt::format("padding {} reaches past kernel {}", layer.padding, layer.kernel));
    const Shape in = input();
    gpu::ConvolutionOperation operation{.height = in.height,
                                        .width = in.width,
                                        .channels = in.channels,
                                        .outputs = layer.channels,
                                        .kernel = layer.kernel,
                                        .padding = layer.padding};
    if (operation.output_height() < 1 || operation.output_width() < 1)
      return invalid(
          fmt::format("a {0} × {0} kernel with padding {1} does not fit an image of {2} × {3}",
                      layer.kernel, layer.padding, in.height, in.width));
    const double padded = static_cast<double>(operation.padded_height()) *
                          operation.padded_width() * operation.channels;
    if (padded > kMostScratch)
      return invalid(fmt::format("padding {} is too large", layer.padding));
    const std::int64_t taps = std::int64_t{layer.kernel} * layer.kernel;
    if (static_cast<double>(taps) * in.channels * layer.channels > kMostScratch)
      return invalid(fmt::format("a {0} × {0} kernel from {1} to {2} channels is too large",
                                 layer.kernel, in.channels, layer.channels));
    if (const int most = std::max(in.channels, layer.channels); most > kMostConvolutionChannels)
      return invalid(fmt::format("{} channels are too many for a convolution; the most are {}",
                                 most, kMostConvolutionChannels));
    // A convolution is followed by relu, directly or after its group norm.
    operation.weights =
        block("weights", {layer.kernel, layer.kernel, in.channels, layer.channels},
              layer.activation == Activation::tanh ? Start::glorot_uniform : Start::he_normal,
              taps * in.channels, taps * layer.channels);
    if (layer.bias) operation.bias = block("bias", {layer.channels}, Start::zero);
    result.output = {operation.output_height(), operation.output_width(), layer.channels};
    add_products(2.0 * static_cast<double>(taps * in.channels) *
                 static_cast<double>(result.output.values()));
    return add_activated(operation, layer.activation);
  }

  Status lower(const MaxPool& layer) {
    const Shape in = input();
    GOSSAMER_TRY_STATUS(check_window(layer.size));
    result.output = {in.height / layer.size, in.width / layer.size, in.channels};
    add_elementwise(in.values());
    return add(gpu::MaxPoolOperation{
        .height = in.height, .width = in.width, .channels = in.channels, .size = layer.size});
  }

  Status lower(const AveragePool& layer) {
    const Shape in = input();
    const int height = layer.size == 0 ? in.height : layer.size,
              width = layer.size == 0 ? in.width : layer.size;
    if (layer.size != 0) GOSSAMER_TRY_STATUS(check_window(layer.size));
    result.output = {in.height / height, in.width / width, in.channels};
    add_elementwise(in.values());
    return add(gpu::AveragePoolOperation{.height = in.height,
                                         .width = in.width,
                                         .channels = in.channels,
                                         .window_height = height,
                                         .window_width = width});
  }

  Status lower(const GroupNorm& layer) {
    const Shape in = input();
    if (layer.groups < 1 || in.channels % layer.groups != 0)
      return invalid(fmt::format("{} groups do not divide {} channels", layer.groups, in.channels));
    if (in.positions() == 1 && in.channels == layer.groups)
      return invalid("the norm of one value is a constant; use fewer groups");
    if (layer.groups > kMostGroups)
      return invalid(
          fmt::format("{} groups are too many; the most are {}", layer.groups, kMostGroups));
    return add_norm(in.positions(), layer.groups, layer.activation, 1);
  }

  Status lower(const LayerNorm&) {
    if (input().channels < 2)
      return invalid("the norm of one channel is a constant; layer_norm needs two or more");
    // Each position is a sample with a single group.
    return add_norm(1, 1, Activation::none, input().positions());
  }

  Status lower(const Activate& layer) {
    result.output = input();
    add_elementwise(input().values());
    return add(gpu::ElementwiseOperation{.values = values(), .activation = layer.activation});
  }

  Status lower(const Add& layer) {
    for (const Shape& shape : inputs_)
      if (shape != input())
        return invalid(fmt::format("it adds tensors of {} and of {}; their shapes must be equal",
                                   to_string(input()), to_string(shape)));
    result.output = input();
    add_elementwise(input().values() * (inputs_.size() - 1));
    return add_activated(gpu::SumOperation{.values = values()}, layer.activation);
  }

  Status lower(const Concatenate&) {
    gpu::ConcatenateOperation operation{.pixels = input().positions(), .channels = {}};
    std::int64_t channels = 0;
    for (const Shape& shape : inputs_) {
      if (shape.height != input().height || shape.width != input().width)
        return invalid(fmt::format(
            "it concatenates the channels of tensors of {} and of {}; their heights and "
            "widths must be equal",
            to_string(input()), to_string(shape)));
      operation.channels.push_back(shape.channels);
      channels += shape.channels;
    }
    if (channels > kMostChannels) return invalid(fmt::format("{} channels are too many", channels));
    result.output = {input().height, input().width, static_cast<int>(channels)};
    return add(operation);
  }

  Status lower(const Reshape& layer) {
    const auto all = static_cast<std::int64_t>(input().values());
    Shape to{layer.height, layer.width, layer.channels};
    int* unknown = nullptr;
    std::int64_t known = 1;
    for (int* extent : {&to.height, &to.width, &to.channels}) {
      if (*extent < 0) return invalid("the extents of a shape are at least 0 (0: inferred)");
      if (*extent == 0 && unknown != nullptr)
        return invalid("at most one extent of the shape can be 0, which means: inferred");
      if (*extent == 0) unknown = extent;
      else known *= *extent;
      if (known > all) break;  // before it overflows
    }
    if (unknown != nullptr && all % known == 0) *unknown = static_cast<int>(all / known);
    if (known > all || static_cast<std::int64_t>(to.values()) != all)
      return invalid(fmt::format("{} has {} values, which do not fill a shape of {} × {} × {}",
                                 to_string(input()), all, layer.height, layer.width,
                                 layer.channels));
    result.output = to;
    return {};
  }

  Status lower(const Embedding& layer) {
    if (layer.vocabulary < 1 || layer.features < 1)
      return invalid("an embedding needs a vocabulary and features of at least 1");
    gpu::EmbeddingOperation operation{.tokens = static_cast<int>(input().values()),
                                      .vocabulary = layer.vocabulary,
                                      .features = layer.features};
    operation.table = block("table", {layer.vocabulary, layer.features}, Start::embedding);
    result.output = {operation.tokens, 1, layer.features};
    result.parameter_gradient_flops = static_cast<double>(result.output.values());
    return add(operation);
  }

  Status lower(const PositionEmbedding&) {
    result.output = input();
    gpu::ElementwiseOperation operation{.values = values()};
    operation.bias =
        block("table", {input().height, input().width, input().channels}, Start::embedding);
    add_elementwise(input().values());
    result.parameter_gradient_flops = static_cast<double>(input().values());
    return add(operation);
  }

  Status lower(const Attention& layer) {
    const Shape in = input();
    if (layer.heads < 1 || in.channels % (3 * std::int64_t{layer.heads}) != 0)
      return invalid(fmt::format(
          "the {} channels of its input are not query, key and value of each of {} heads: "
          "the channels are 3 · heads · features of a head",
          in.channels, layer.heads));
    const gpu::AttentionOperation operation{.positions = in.positions(),
                                            .heads = layer.heads,
                                            .features = in.channels / (3 * layer.heads),
                                            .causal = layer.causal};
    if (1.0 * operation.positions * operation.positions * operation.heads > kMostScratch)
      return invalid(fmt::format("the attention of {} heads among {} positions is too large",
                                 operation.heads, operation.positions));
    result.output = {in.height, in.width, operation.width()};
    const double product = 2.0 * in.positions() * in.positions() * operation.width();
    result.forward_flops = 2 * product;
    result.input_gradient_flops = 4 * product;
    return add(operation);
  }

  LoweredOperation result;

 private:
  const Shape& input() const { return inputs_[0]; }
  int values() const { return static_cast<int>(input().values()); }

  Status check_window(int size) const {
    if (size < 1) return invalid("a pool needs a window of at least 1");
    if (size > input().height || size > input().width)
      return invalid(fmt::format("a {0} × {0} pool does not fit an image of {1} × {2}", size,
                                 input().height, input().width));
    return {};
  }

  static Start weights_start(Activation activation) {
    return activation == Activation::relu || activation == Activation::gelu ? Start::he_normal
                                                                            : Start::glorot_uniform;
  }

  std::size_t block(const char* role, std::vector<int> shape, Start start, std::int64_t fan_in = 0,
                    std::int64_t fan_out = 0) {
    return parameters_.add({.name = fmt::format("{}.{}", name_, role),
                            .shape = std::move(shape),
                            .start = start,
                            .fan_in = fan_in,
                            .fan_out = fan_out});
  }

  Status add_norm(int pixels, int groups, Activation activation, int positions) {
    if (input().channels > kMostNormChannels)
      return invalid(fmt::format("{} channels are too many for a norm; the most are {}",
                                 input().channels, kMostNormChannels));
    result.output = input();
    gpu::GroupNormOperation operation{
        .pixels = pixels, .channels = input().channels, .groups = groups};
    operation.scale = block("scale", {input().channels}, Start::one);
    operation.shift = block("shift", {input().channels}, Start::zero);
    const auto all = static_cast<double>(input().values());
    result.forward_flops = 7 * all;  // mean and variance: 4, scaling: 3
    result.parameter_gradient_flops = 4 * all;
    result.input_gradient_flops = 6 * all;
    return add_activated(operation, activation, positions);
  }

  /// A product that takes `flops`, and whose two gradients are products of the same size.
  void add_products(double flops) {
    result.forward_flops = result.parameter_gradient_flops = result.input_gradient_flops = flops;
  }
  void add_elementwise(std::size_t values) {
    result.forward_flops = result.input_gradient_flops = static_cast<double>(values);
  }

  Status add(decltype(gpu::LayerOperation::operation) operation, int positions = 1) {
    result.layers.push_back({std::move(operation), positions});
    return {};
  }

  /// A layer with its activation. gelu is a layer of its own.
  template <class LayerType>
  Status add_activated(LayerType layer, Activation activation, int positions = 1) {
    const bool own_layer = activation == Activation::gelu;
    layer.activation = own_layer ? Activation::none : activation;
    GOSSAMER_TRY_STATUS(add(layer, positions));
    if (!own_layer) return {};
    const auto all = static_cast<int>(result.output.values());
    return add(gpu::ElementwiseOperation{.values = all, .activation = activation});
  }

  const std::string& name_;
  std::span<const Shape> inputs_;
  ParameterLayout& parameters_;
};

}  // namespace

std::vector<gpu::MatrixShape> matrices_of(std::span<const ParameterBlock> blocks) {
  std::vector<gpu::MatrixShape> matrices;
  for (const ParameterBlock& block : blocks) {
    if (block.length == 0) continue;
    gpu::MatrixShape best{block.offset, block.length, 1};
    std::size_t rows = 1;
    for (const int extent : block.shape) {
      rows *= static_cast<std::size_t>(extent);
      const std::size_t columns = block.length / rows;
      if (rows + columns < best.rows + best.columns) best = {block.offset, rows, columns};
    }
    matrices.push_back(best);
  }
  return matrices;
}

std::size_t ParameterLayout::add(ParameterBlock block) {
  block.offset = values();
  block.length = 1;
  for (const int extent : block.shape) block.length *= static_cast<std::size_t>(extent);
  blocks_.push_back(std::move(block));
  return blocks_.back().offset;
}

std::size_t ParameterLayout::values() const {
  return blocks_.empty() ? 0 : blocks_.back().offset + blocks_.back().length;
}

Result<LoweredOperation> lower(const Operation& operation, std::span<const Shape> inputs,
                               ParameterLayout& parameters) {
  Lowering lowering(operation, inputs, parameters);
  GOSSAMER_TRY_STATUS(std::visit([&](const auto& op) { return lowering.lower(op); }, operation.op));
  return std::move(lowering.result);
}

}  // namespace gossamer::train
