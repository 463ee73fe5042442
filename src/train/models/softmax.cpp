// Softmax regression: one dense layer and the cross entropy. Convex; the standard small test of
// decentralised SGD.
#include "train/model.hpp"

namespace gossamer::train::models::softmax {

ModelKind descriptor() {
  const auto make = [](const ModelContext& context,
                       const ParameterValues& values) -> Result<ModelSpec> {
    GOSSAMER_TRY_STATUS(require_classes("softmax", context));
    GOSSAMER_TRY([[maybe_unused]] const ParameterValues checked, check_values("model", {}, values));
    return chain({Dense{.units = context.classes}}, Loss::softmax_cross_entropy);
  };
  return {.name = "softmax",
          .summary = "softmax regression: one dense layer, cross entropy (convex)",
          .source = "Cox, J. R. Stat. Soc. B 1958",
          .parameters = {},
          .make = make};
}

}  // namespace gossamer::train::models::softmax
