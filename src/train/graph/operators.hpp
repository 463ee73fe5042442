// The operators as data: names, parameters, and how values become an operator. Model files and
// `gossamer list` read these declarations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "train/graph/model_graph.hpp"

namespace gossamer::train {

struct OperatorKind {
  std::string name;  ///< operator_name()
  std::string summary;
  std::string source;  ///< a paper; may be empty
  std::vector<ParameterSpec> parameters;
  /// The operator with these values; `context` gives a dense operation without units as many as the
  /// data want. Errors (invalid): as of check_values, for the owner `owner`.
  std::function<Result<Operator>(const std::string& owner, const ParameterValues& values,
                                 const ModelContext& context)>
      make = {};
  std::function<ParameterValues(const Operator&)> values = {};  ///< of an operator of this kind
};

/// In the order of Operator's alternatives.
const std::vector<OperatorKind>& operator_kinds();

/// The operator, and its parameters that have not their default values: "dense units = 10".
std::string describe(const Operator& op);

/// The whole model as text: equal texts mean equal models. An operation is a line: name, operator,
/// inputs and parameters.
std::string canonical_text(const ModelSpec& spec);

}  // namespace gossamer::train
