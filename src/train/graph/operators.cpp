#include "train/graph/operators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace gossamer::train {
namespace {

/// Most units, channels, tokens and the like that a model file can ask for.
constexpr double kMost = 1e7;

constexpr const char* kActivations[] = {"none", "relu", "tanh", "gelu"};  // as of Activation

Activation activation_of(const std::string& name) {
  const auto found = std::find(std::begin(kActivations), std::end(kActivations), name);
  return static_cast<Activation>(found - std::begin(kActivations));
}

/// The parameters of an operator as they are declared: an activation is a text.
template <class Op>
struct OperatorOptions {
  Op op;
  std::string activation = activation_name(op);

  static std::string activation_name(const Op& op) {
    if constexpr (requires { op.activation; })
      return kActivations[static_cast<std::size_t>(op.activation)];
    return "";
  }
};

template <class Op>
using Options = OperatorOptions<Op>;

template <class Op>
ParameterSet<Options<Op>> with_activation(ParameterSet<Options<Op>> set) {
  return set.add(
      "activation", &Options<Op>::activation,
      {.help = "of the result", .choices = {std::begin(kActivations), std::end(kActivations)}});
}

/// The declaration of one operator.
template <class Op>
OperatorKind kind_of(std::string summary, std::string source, ParameterSet<Options<Op>> set) {
  OperatorKind kind{.name = operator_name(Op{}),
                    .summary = std::move(summary),
                    .source = std::move(source),
                    .parameters = set.specs()};
  kind.make = [set](const std::string& owner, const ParameterValues& values,
                    const ModelContext& context) -> Result<Operator> {
    GOSSAMER_TRY(Options<Op> options, set.read(owner, values));
    if constexpr (requires { options.op.activation; })
      options.op.activation = activation_of(options.activation);
    if constexpr (std::is_same_v<Op, Dense>)
      if (options.op.units == 0) options.op.units = std::max(context.classes, 1);
    return Operator(options.op);
  };
  kind.values = [set](const Operator& op) {
    const Op& own = std::get<Op>(op);
    return set.values({own, Options<Op>::activation_name(own)});
  };
  return kind;
}

ParameterNotes count(std::string help, double minimum, std::string unit = {}) {
  return {.help = std::move(help), .minimum = minimum, .maximum = kMost, .unit = std::move(unit)};
}

/// Those of networks for images.
void add_layers(std::vector<OperatorKind>& kinds) {
  kinds.push_back(kind_of<Dense>(
      "y = activation(x W + b)", "Rosenblatt, Psychol. Rev. 1958",
      with_activation(
          ParameterSet<Options<Dense>>()
              .add("units", &Options<Dense>::op, &Dense::units,
                   count("values of the result; 0: the classes of the data, or 1 for a target", 0,
                         "units"))
              .add("bias", &Options<Dense>::op, &Dense::bias, {.help = "add b"})
              .add("per_position", &Options<Dense>::op, &Dense::per_position,
                   {.help = "x: the channels of each position, instead of all values"}))));
  kinds.push_back(kind_of<Convolution>(
      "convolution with a square kernel, stride 1", "LeCun et al., Proc. IEEE 1998",
      with_activation(ParameterSet<Options<Convolution>>()
                          .add("channels", &Options<Convolution>::op, &Convolution::channels,
                               count("channels of the result", 1, "channels"))
                          .add("kernel", &Options<Convolution>::op, &Convolution::kernel,
                               count("height and width of the kernel", 1, "pixels"))
                          .add("padding", &Options<Convolution>::op, &Convolution::padding,
                               count("zeros on every side", 0, "pixels"))
                          .add("bias", &Options<Convolution>::op, &Convolution::bias,
                               {.help = "add a constant to each channel"}))));
  kinds.push_back(
      kind_of<MaxPool>("the greatest value of each square window", "Ranzato et al., CVPR 2007",
                       ParameterSet<Options<MaxPool>>().add(
                           "size", &Options<MaxPool>::op, &MaxPool::size,
                           count("height, width and stride of a window", 1, "pixels"))));
  kinds.push_back(kind_of<AveragePool>(
      "the mean of each square window, or of all positions", "LeCun et al., Proc. IEEE 1998",
      ParameterSet<Options<AveragePool>>().add(
          "size", &Options<AveragePool>::op, &AveragePool::size,
          count("height, width and stride of a window; 0: all positions", 0, "pixels"))));
  kinds.push_back(
      kind_of<GroupNorm>("norm of groups of channels within a sample", "Wu and He, ECCV 2018",
                         with_activation(ParameterSet<Options<GroupNorm>>().add(
                             "groups", &Options<GroupNorm>::op, &GroupNorm::groups,
                             count("groups of channels; divides their number", 1, "groups")))));
  kinds.push_back(kind_of<LayerNorm>("norm of the channels of each position",
                                     "Ba, Kiros, Hinton, arXiv:1607.06450",
                                     ParameterSet<Options<LayerNorm>>()));
}

/// Those of graphs and of sequences.
void add_others(std::vector<OperatorKind>& kinds) {
  kinds.push_back(kind_of<Activate>("a function of each value",
                                    "gelu: Hendrycks and Gimpel, arXiv:1606.08415",
                                    with_activation(ParameterSet<Options<Activate>>())));
  kinds.push_back(kind_of<Add>("the sum of two or more tensors", "He et al., CVPR 2016",
                               with_activation(ParameterSet<Options<Add>>())));
  kinds.push_back(kind_of<Concatenate>("the channels of two or more tensors beside each other",
                                       "Szegedy et al., CVPR 2015",
                                       ParameterSet<Options<Concatenate>>()));
  kinds.push_back(kind_of<Reshape>(
      "the same values in another shape, in row-major order", "",
      ParameterSet<Options<Reshape>>()
          .add("height", &Options<Reshape>::op, &Reshape::height, count("0: inferred", 0))
          .add("width", &Options<Reshape>::op, &Reshape::width, count("0: inferred", 0))
          .add("channels", &Options<Reshape>::op, &Reshape::channels, count("0: inferred", 0))));
  kinds.push_back(kind_of<Embedding>(
      "a learned row for each token; the values of a sample are tokens", "Bengio et al., JMLR 2003",
      ParameterSet<Options<Embedding>>()
          .add("vocabulary", &Options<Embedding>::op, &Embedding::vocabulary,
               count("number of tokens", 1, "tokens"))
          .add("features", &Options<Embedding>::op, &Embedding::features,
               count("channels of a row", 1, "channels"))));
  kinds.push_back(kind_of<PositionEmbedding>("adds a learned value to each value of a sample",
                                             "Gehring et al., ICML 2017",
                                             ParameterSet<Options<PositionEmbedding>>()));
  kinds.push_back(kind_of<Attention>(
      "scaled dot-product attention; the channels are query, key and value of each head",
      "Vaswani et al., NeurIPS 2017",
      ParameterSet<Options<Attention>>()
          .add("heads", &Options<Attention>::op, &Attention::heads,
               count("heads; 3 heads divide the channels", 1, "heads"))
          .add("causal", &Options<Attention>::op, &Attention::causal,
               {.help = "a position attends only to itself and those before it"})));
}

std::vector<OperatorKind> make_kinds() {
  std::vector<OperatorKind> kinds;
  add_layers(kinds);
  add_others(kinds);
  return kinds;
}

const OperatorKind& kind_of(const Operator& op) { return operator_kinds()[op.index()]; }

}  // namespace

const std::vector<OperatorKind>& operator_kinds() {
  static const std::vector<OperatorKind> kinds = make_kinds();
  return kinds;
}

std::string describe(const Operator& op) {
  const ParameterValues values = kind_of(op).values(op);
  std::vector<std::string> texts;
  for (const ParameterSpec& spec : kind_of(op).parameters)
    if (const ParameterValue& value = values.at(spec.name); value != spec.default_value)
      texts.push_back(fmt::format("{} = {}", spec.name, gossamer::to_string(value)));
  return fmt::format("{}{}{}", operator_name(op), texts.empty() ? "" : " ", fmt::join(texts, ", "));
}

std::string canonical_text(const ModelSpec& spec) {
  std::string text = spec.loss == Loss::squared_error ? "squared_error" : "softmax_cross_entropy";
  for (const Operation& operation : spec.operations) {
    text += fmt::format("\n{} {} {}", operation.name, operator_name(operation.op),
                        fmt::join(operation.inputs, ","));
    for (const auto& [name, value] : kind_of(operation.op).values(operation.op))
      text += fmt::format(" {}={}", name, gossamer::to_string(value));
  }
  return text;
}

}  // namespace gossamer::train
