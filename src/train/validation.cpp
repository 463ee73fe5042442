#include "train/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/philox.hpp"

namespace gossamer::train {
namespace {

using Samples = std::vector<std::uint32_t>;

/// The values of `samples`, each of `width` values.
template <class Value>
void keep(std::vector<Value>& values, std::size_t width, const Samples& samples) {
  if (values.empty()) return;
  std::vector<Value> kept;
  kept.reserve(samples.size() * width);
  for (const std::uint32_t i : samples) {
    const auto row = values.begin() + static_cast<std::ptrdiff_t>(i * width);
    kept.insert(kept.end(), row, row + static_cast<std::ptrdiff_t>(width));
  }
  values = std::move(kept);
}

/// The part of `samples` that is held out, ascending; `samples` keeps the rest. `peer` has them, or
/// kNoPeer.
Result<Samples> take_out(Samples& samples, double fraction, std::uint32_t peer) {
  const auto count =
      static_cast<std::size_t>(std::llround(fraction * static_cast<double>(samples.size())));
  if (count == 0 || count == samples.size())
    return invalid_error(fmt::format(
        "data.validation: {} of {} training samples{} would validate and {} train; choose {}",
        count, samples.size(), peer == kNoPeer ? "" : fmt::format(" of peer {}", peer),
        samples.size() - count, count == 0 ? "more" : "less"));
  RandomStream(0, peer, Purpose::validation).shuffle(samples);
  Samples out(samples.end() - static_cast<std::ptrdiff_t>(count), samples.end());
  samples.resize(samples.size() - count);
  std::ranges::sort(samples);
  std::ranges::sort(out);
  return out;
}

Status check(const Dataset& data, const DatasetContext& context) {
  if (context.evaluate == EvaluationSplit::validation &&
      (context.validation == 0 || data.train_count == 0))
    return invalid_error(
        context.validation == 0
            ? "data.evaluate: there are no validation samples; set data.validation, such as 0.1"
            : "data.evaluate: a server has no samples of its own, and cannot validate on them");
  if (context.validation > 0 && !data.own && !data.natural_shards.empty())
    return invalid_error(fmt::format(
        "data.validation: '{}' generates the samples of every peer; set data.validation = 0",
        data.name));
  return {};
}

}  // namespace

Status hold_out(Dataset& data, const DatasetContext& context) {
  GOSSAMER_TRY_STATUS(check(data, context));
  if (context.validation == 0 || data.train_count == 0) return {};
  std::vector<std::pair<std::uint32_t, Samples>> groups;  // of a peer, or of all
  for (std::size_t p = 0; p < data.natural_shards.size(); ++p)
    if (!data.natural_shards[p].empty())
      groups.emplace_back(static_cast<std::uint32_t>(p), std::move(data.natural_shards[p]));
  if (groups.empty()) {
    Samples all(data.train_count);
    std::iota(all.begin(), all.end(), 0U);
    groups.emplace_back(kNoPeer, std::move(all));
  }

  Samples order, validation;
  for (auto& [peer, samples] : groups) {
    GOSSAMER_TRY(const Samples out, take_out(samples, context.validation, peer));
    validation.insert(validation.end(), out.begin(), out.end());
    if (data.own) {
      Samples& shard = data.natural_shards[peer];
      shard.resize(samples.size());
      std::iota(shard.begin(), shard.end(), static_cast<std::uint32_t>(order.size()));
    }
    order.insert(order.end(), samples.begin(), samples.end());
  }
  const std::size_t train_count = order.size();
  if (context.evaluate == EvaluationSplit::validation)
    order.insert(order.end(), validation.begin(), validation.end());
  else
    for (std::size_t i = data.train_count; i < data.count; ++i)
      order.push_back(static_cast<std::uint32_t>(i));
  keep(data.features, data.feature_count(), order);
  keep(data.unscaled, data.feature_count(), order);
  keep(data.labels, 1, order);
  keep(data.targets, 1, order);
  data.train_count = train_count;
  data.count = order.size();
  return {};
}

}  // namespace gossamer::train
