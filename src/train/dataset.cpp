#include "train/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gossamer::train {

Result<Dataset> make_dataset(const std::string& kind, const DatasetContext& context,
                             const ParameterValues& values) {
  std::vector<std::string> names;
  for (const DatasetKind& candidate : datasets::catalog()) {
    if (candidate.name == kind) return candidate.make(context, values);
    names.push_back(candidate.name);
  }
  return invalid_error(
      fmt::format("data.kind: there is no data set '{}', only {}", kind, fmt::join(names, ", ")));
}

}  // namespace gossamer::train
