#include "train/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gossamer::train {

void standardise(Dataset& data, std::span<const ShardSummary> shards) {
  const std::size_t width = data.feature_count();
  std::vector<FeatureScale> scales = pooled_scales(shards);
  if (scales.empty()) scales.resize(width);  // nothing is known of the shards yet
  data.features.resize(data.unscaled.size());
  for (std::size_t i = 0; i < data.features.size(); ++i) {
    const FeatureScale& scale = scales[i % width];
    data.features[i] = static_cast<float>((data.unscaled[i] - scale.mean) / scale.deviation);
  }
}

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
