#include "train/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "train/validation.hpp"

namespace gossamer::train {

namespace {

/// The summaries of own shards, and the features that need scales.
void scale(Dataset& data) {
  const std::span<const double> unscaled(data.unscaled);
  const std::size_t width = data.feature_count();
  const auto summary_of = [&](std::size_t begin, std::size_t end) {
    if (unscaled.empty()) return ShardSummary{end - begin, {}, {}};
    return summarise(unscaled.subspan(begin * width, (end - begin) * width), width);
  };
  if (data.own)
    for (const auto& shard : data.natural_shards)  // its samples are adjacent
      data.own_shards.push_back(shard.empty() ? ShardSummary()
                                              : summary_of(shard.front(), shard.back() + 1));
  if (unscaled.empty()) return;
  if (data.own) return standardise(data, data.own_shards);
  const ShardSummary all = summary_of(0, data.train_count);
  standardise(data, std::span(&all, 1));
  data.unscaled = {};
}

}  // namespace

void give_to_peers(Dataset& data, const DatasetContext& context,
                   std::span<const std::size_t> sizes) {
  data.own = true;
  data.natural_shards.resize(static_cast<std::size_t>(context.peers));
  std::uint32_t first = 0;
  for (std::size_t k = 0; k < context.hosted.size(); ++k) {
    auto& shard = data.natural_shards[static_cast<std::size_t>(context.hosted[k])];
    shard.resize(sizes[k]);
    std::iota(shard.begin(), shard.end(), first);
    first += static_cast<std::uint32_t>(sizes[k]);
  }
}

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
    if (candidate.name == kind) {
      GOSSAMER_TRY(Dataset data, candidate.make(context, values));
      GOSSAMER_TRY_STATUS(hold_out(data, context));
      scale(data);
      return data;
    }
    names.push_back(candidate.name);
  }
  return invalid_error(
      fmt::format("data.kind: there is no data set '{}', only {}", kind, fmt::join(names, ", ")));
}

}  // namespace gossamer::train
