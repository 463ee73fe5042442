// Multi-layer perceptron: dense layers with an activation between, cross entropy.
#include <fmt/format.h>

#include "train/model.hpp"

namespace gossamer::train::models::mlp {
namespace {

constexpr std::size_t kMostHiddenLayers = 1024;

struct MlpOptions {
  std::vector<int> hidden = {128};
  std::string activation = "relu";
};

const ParameterSet<MlpOptions>& mlp_parameters() {
  static const auto set = ParameterSet<MlpOptions>()
                              .add("hidden", &MlpOptions::hidden,
                                   {.help = "units of each hidden layer, input side first",
                                    .minimum = 1,
                                    .maximum = 65536,
                                    .unit = "units"})
                              .add("activation", &MlpOptions::activation,
                                   {.help = "between the layers", .choices = {"relu", "tanh"}});
  return set;
}

}  // namespace

ModelKind descriptor() {
  const auto make = [](const ModelContext& context,
                       const ParameterValues& values) -> Result<ModelSpec> {
    GOSSAMER_TRY_STATUS(require_classes("mlp", context));
    GOSSAMER_TRY(const MlpOptions options, mlp_parameters().read("model", values));
    if (options.hidden.size() > kMostHiddenLayers)
      return invalid_error(fmt::format("model.hidden: {} layers; the most are {}",
                                       options.hidden.size(), kMostHiddenLayers));
    std::vector<Operator> operators;
    const Activation activation =
        options.activation == "tanh" ? Activation::tanh : Activation::relu;
    for (int units : options.hidden)
      operators.push_back(Dense{.units = units, .activation = activation});
    operators.push_back(Dense{.units = context.classes});
    return chain(std::move(operators), Loss::softmax_cross_entropy);
  };
  return {.name = "mlp",
          .summary = "multi-layer perceptron, cross entropy",
          .source = "Rumelhart, Hinton, Williams, Nature 1986",
          .parameters = mlp_parameters().specs(),
          .make = make};
}

}  // namespace gossamer::train::models::mlp
