#include "train/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gossamer::train {

Result<ModelSpec> make_model(const std::string& kind, const ModelContext& context,
                             const ParameterValues& values) {
  std::vector<std::string> names;
  for (const ModelKind& model : models::catalog()) {
    if (model.name == kind) return model.make(context, values);
    names.push_back(model.name);
  }
  return invalid_error(
      fmt::format("model.kind: '{}' is unknown; there are: {}", kind, fmt::join(names, ", ")));
}

Status require_classes(const std::string& kind, const ModelContext& context) {
  if (context.classes >= 2) return {};
  return invalid_error(fmt::format(
      "model.kind: {} classifies, but these data have {}", kind,
      context.classes == 0 ? "a target to regress on (give linear)" : "a single class"));
}

}  // namespace gossamer::train
