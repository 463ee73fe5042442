#include "peer/attack/poisoning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace gossamer::peer {
namespace {

/// Puts the trigger into a sample: `value` in the lower right corner of every channel.
void stamp(train::Dataset& data, std::size_t sample, int size, float value) {
  const int height = std::min(size, data.height), width = std::min(size, data.width);
  float* const features = data.features.data() + sample * data.feature_count();
  for (int channel = 0; channel < data.channels; ++channel)
    for (int y = data.height - height; y < data.height; ++y) {
      float* const end = features + (channel * data.height + y + 1) * data.width;
      std::fill(end - width, end, value);
    }
}

float largest_feature(const train::Dataset& data) { return std::ranges::max(data.features); }

void flip_labels(train::Dataset& data, std::span<const std::uint32_t> shard) {
  for (const std::uint32_t sample : shard)
    data.labels[sample] = data.classes - 1 - data.labels[sample];
}

void add_backdoor(train::Dataset& data, std::span<const std::uint32_t> shard,
                  const gossip::Backdoor& backdoor, float value) {
  double before = 0;
  for (std::size_t k = 0; k < shard.size(); ++k) {
    const double after = std::floor(static_cast<double>(k + 1) * backdoor.share);
    if (after == std::exchange(before, after)) continue;
    stamp(data, shard[k], backdoor.size, value);
    data.labels[shard[k]] = backdoor.target;
  }
}

}  // namespace

Status poison(train::Dataset& data, const train::Shards& shards, const gossip::AttackPlan& plan) {
  if (!plan.poisons()) return {};
  const gossip::Backdoor* const backdoor = plan.backdoor();
  if (data.classes == 0)
    return invalid_error(fmt::format(
        "attack.kind: '{}' changes classes, and '{}' has none; choose data with classes (digits), "
        "or another attack",
        backdoor != nullptr ? "backdoor" : "label_flip", data.name));
  if (backdoor != nullptr && backdoor->target >= data.classes)
    return invalid_error(
        fmt::format("attack.target: there is no class {}; the classes of '{}' are "
                    "0 to {}",
                    backdoor->target, data.name, data.classes - 1));
  if (backdoor != nullptr && data.own)
    return invalid_error(
        "attack.kind: the trigger of 'backdoor' has the largest value of all samples, which no "
        "process can compute if each peer has its own data (data.partition = own); choose another "
        "attack, or other data");
  const float value = largest_feature(data);
  for (const int peer : plan.hostile) {
    const auto& shard = shards[static_cast<std::size_t>(peer)];
    if (backdoor != nullptr) add_backdoor(data, shard, *backdoor, value);
    else flip_labels(data, shard);
  }
  return {};
}

Result<train::Dataset> triggered_samples(const train::Dataset& data,
                                         const gossip::Backdoor& backdoor) {
  train::Dataset triggered;
  triggered.name = data.name;
  triggered.channels = data.channels;
  triggered.height = data.height;
  triggered.width = data.width;
  triggered.classes = data.classes;
  const std::size_t length = data.feature_count();
  for (std::size_t sample = data.train_count; sample < data.count; ++sample) {
    if (data.labels[sample] == backdoor.target) continue;
    const auto first = data.features.begin() + static_cast<std::ptrdiff_t>(sample * length);
    triggered.features.insert(triggered.features.end(), first,
                              first + static_cast<std::ptrdiff_t>(length));
    triggered.labels.push_back(backdoor.target);
  }
  triggered.count = triggered.train_count = triggered.labels.size();
  if (triggered.count == 0)
    return invalid_error(
        fmt::format("attack.kind: the success of 'backdoor' is measured on test samples of other "
                    "classes, and '{}' has none; choose data with test samples (digits), or "
                    "another attack",
                    data.name));
  const float value = largest_feature(data);
  for (std::size_t sample = 0; sample < triggered.count; ++sample)
    stamp(triggered, sample, backdoor.size, value);
  return triggered;
}

}  // namespace gossamer::peer
