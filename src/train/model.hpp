// The kinds of models. One file of train/models/ is one kind: a function from the shapes of the
// data and its parameters to a graph of operations (train/graph/model_graph.hpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "train/graph/model_graph.hpp"

namespace gossamer::train {

struct ModelKind {
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterSpec> parameters;
  bool needs_values = false;  ///< a parameter has no default that works, such as a file's path
  /// The operations for these data. Errors (invalid): why this model cannot be trained on them (a
  /// CNN on vectors, softmax on regression).
  std::function<Result<ModelSpec>(const ModelContext&, const ParameterValues&)> make;
};

namespace models {
std::vector<ModelKind> catalog();
}  // namespace models

/// Builds model `kind`. Errors (invalid): an unknown kind, with a list of the kinds, or the
/// factory's.
Result<ModelSpec> make_model(const std::string& kind, const ModelContext& context,
                             const ParameterValues& values);

/// For the files of models/: an error (invalid) unless the data have at least two classes.
Status require_classes(const std::string& kind, const ModelContext& context);

}  // namespace gossamer::train
