// Linear regression by least squares. Its optimum is known in closed form, so it measures
// convergence exactly.
#include <fmt/format.h>

#include "train/model.hpp"

namespace gossamer::train::models::linear {
namespace {

struct LinearOptions {
  bool bias =
      false;  ///< off: the synthetic data's closed-form optimum is that of a model without one
};

const ParameterSet<LinearOptions>& linear_parameters() {
  static const auto set = ParameterSet<LinearOptions>().add("bias", &LinearOptions::bias,
                                                            {.help = "add a constant term"});
  return set;
}

}  // namespace

ModelKind descriptor() {
  const auto make = [](const ModelContext& context,
                       const ParameterValues& values) -> Result<ModelSpec> {
    GOSSAMER_TRY(const LinearOptions options, linear_parameters().read("model", values));
    if (context.classes > 0)
      return invalid_error(
          fmt::format("model.kind: linear regresses on a target, but "
                      "these data have {} classes (give softmax, mlp "
                      "or cnn)",
                      context.classes));
    return chain({Dense{.units = 1, .bias = options.bias}}, Loss::squared_error);
  };
  return {.name = "linear",
          .summary = "linear regression: mean of ½ (ŷ − y)² (convex, optimum known)",
          .source = "Legendre 1805",
          .parameters = linear_parameters().specs(),
          .make = make};
}

}  // namespace gossamer::train::models::linear
