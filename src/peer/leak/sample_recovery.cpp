#include "peer/leak/sample_recovery.hpp"

#include <algorithm>
#include <cmath>

namespace gossamer::peer {
namespace {

/// Biases whose steps are smaller parts of the largest one are rounding.
constexpr double kLeastBias = 1e-4;

}  // namespace

SampleRecovery::SampleRecovery(const train::Dataset& data,
                               const std::vector<train::ParameterBlock>& blocks)
    : data_(data), blocks_(blocks) {
  if (blocks.size() < 2) return;
  const auto& weights = blocks[0].shape;
  possible_ = weights.size() == 2 && weights[0] == static_cast<int>(data.feature_count()) &&
              blocks[1].shape == std::vector<int>{weights[1]};
  const auto [lowest, highest] = std::ranges::minmax(data.features);
  lowest_ = lowest;
  highest_ = highest;
}

std::vector<std::vector<float>> SampleRecovery::candidates(std::span<const double> update) const {
  std::vector<std::vector<float>> candidates;
  if (!possible_) return candidates;
  const std::span<const double> weights = update.subspan(blocks_[0].offset, blocks_[0].length),
                                biases = update.subspan(blocks_[1].offset, blocks_[1].length);
  double largest = 0;
  for (const double bias : biases) largest = std::max(largest, std::abs(bias));
  for (std::size_t j = 0; j < biases.size(); ++j) {
    if (largest == 0 || std::abs(biases[j]) < kLeastBias * largest) continue;
    std::vector<float>& candidate = candidates.emplace_back(data_.feature_count());
    for (std::size_t f = 0; f < candidate.size(); ++f)
      candidate[f] = std::clamp(static_cast<float>(weights[f * biases.size() + j] / biases[j]),
                                lowest_, highest_);
  }
  return candidates;
}

std::vector<RecoveredSample> SampleRecovery::match(
    std::span<const std::uint32_t> samples,
    const std::vector<std::vector<float>>& candidates) const {
  std::vector<RecoveredSample> matches;
  for (const std::uint32_t sample : samples) {
    const std::vector<float>* nearest = nullptr;
    double best = 0;
    for (const std::vector<float>& candidate : candidates) {
      const double here = psnr(data_.features_of(sample), candidate);
      if (nearest != nullptr && here <= best) continue;
      best = here;
      nearest = &candidate;
    }
    if (nearest != nullptr) matches.push_back({sample, best, *nearest});
  }
  std::ranges::stable_sort(matches, std::greater<>(), &RecoveredSample::psnr);
  return matches;
}

std::vector<std::vector<float>> SampleRecovery::other_samples(std::size_t count) const {
  std::vector<std::vector<float>> samples;
  for (std::size_t i = data_.train_count; i < data_.count && samples.size() < count; ++i) {
    const std::span<const float> sample = data_.features_of(i);
    samples.emplace_back(sample.begin(), sample.end());
  }
  return samples;
}

std::optional<int> SampleRecovery::label(std::span<const double> update) const {
  const train::ParameterBlock& last = blocks_.back();
  if (data_.classes < 2 || last.shape != std::vector<int>{data_.classes}) return std::nullopt;
  const std::span<const double> biases = update.subspan(last.offset, last.length);
  return static_cast<int>(std::ranges::max_element(biases) - biases.begin());
}

/// 10 log10(range² / mean squared difference).
double SampleRecovery::psnr(std::span<const float> a, std::span<const float> b) const {
  double squares = 0;
  for (std::size_t f = 0; f < a.size(); ++f) {
    const double difference = static_cast<double>(a[f]) - static_cast<double>(b[f]);
    squares += difference * difference;
  }
  const double range = static_cast<double>(highest_) - static_cast<double>(lowest_);
  const double ratio = range * range * static_cast<double>(a.size()) / squares;
  return ratio < std::pow(10.0, kMostPsnr / 10) ? 10 * std::log10(ratio) : kMostPsnr;
}

}  // namespace gossamer::peer
