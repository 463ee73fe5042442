#include "peer/leak/sample_recovery.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gossamer::peer {
namespace {

/// Biases whose steps are smaller parts of the largest one are rounding.
constexpr double kLeastBias = 1e-4;
constexpr int kMostFitSteps = 50;
constexpr double kFitted = 1e-12;  ///< squared change of the rows over their squares, at the end

/// entry(r, c) ≈ rows[r] · columns[c]
struct RankOne {
  std::vector<double> rows, columns;
};

/// Alternating least squares on the entries that are not 0. `entries`: [rows, columns].
RankOne fit_rank_one(std::span<const double> entries, std::size_t columns) {
  const std::size_t rows = entries.size() / columns;
  RankOne fit{std::vector<double>(rows), std::vector<double>(columns)};
  for (std::size_t r = 0; r < rows; ++r) {
    double square = 0;
    for (std::size_t c = 0; c < columns; ++c)
      square += entries[r * columns + c] * entries[r * columns + c];
    fit.rows[r] = std::sqrt(square);
  }
  std::vector<double> products, squares;
  const auto solve = [&](const std::vector<double>& given, std::vector<double>& wanted,
                         auto index_of) {
    products.assign(wanted.size(), 0);
    squares.assign(wanted.size(), 0);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) {
        const double entry = entries[r * columns + c];
        if (entry == 0) continue;
        const auto [from, to] = index_of(r, c);
        products[to] += entry * given[from];
        squares[to] += given[from] * given[from];
      }
    for (std::size_t k = 0; k < wanted.size(); ++k)
      wanted[k] = squares[k] > 0 ? products[k] / squares[k] : 0;
  };
  for (int step = 0; step < kMostFitSteps; ++step) {
    const std::vector<double> before = fit.rows;
    solve(fit.rows, fit.columns, [](std::size_t r, std::size_t c) { return std::pair(r, c); });
    solve(fit.columns, fit.rows, [](std::size_t r, std::size_t c) { return std::pair(c, r); });
    double change = 0, square = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      change += (fit.rows[r] - before[r]) * (fit.rows[r] - before[r]);
      square += fit.rows[r] * fit.rows[r];
    }
    if (change <= kFitted * square) break;
  }
  return fit;
}

}  // namespace

SampleRecovery::SampleRecovery(const train::Dataset& data,
                               const std::vector<train::ParameterBlock>& blocks)
    : data_(data), blocks_(blocks) {
  for (std::size_t b = 0; b + 1 < blocks.size() && weights_ == nullptr; ++b)
    if (blocks[b].takes_samples && blocks[b + 1].takes_samples) {
      weights_ = &blocks[b];
      bias_ = &blocks[b + 1];
    }
  const auto [lowest, highest] = std::ranges::minmax(data.features);
  lowest_ = lowest;
  highest_ = highest;
}

std::vector<std::vector<float>> SampleRecovery::candidates(std::span<const double> update) const {
  std::vector<std::vector<float>> candidates;
  if (!possible()) return candidates;
  const std::span<const double> weights = update.subspan(weights_->offset, weights_->length),
                                biases = update.subspan(bias_->offset, bias_->length);
  double largest = 0;
  for (const double bias : biases) largest = std::max(largest, std::abs(bias));
  const auto add = [&](auto value_of_input) {
    std::vector<float>& candidate = candidates.emplace_back(data_.feature_count());
    for (std::size_t f = 0; f < candidate.size(); ++f)
      candidate[f] = std::clamp(static_cast<float>(value_of_input(input_of(f))), lowest_, highest_);
  };
  for (std::size_t j = 0; j < biases.size(); ++j)
    if (largest > 0 && std::abs(biases[j]) >= kLeastBias * largest)
      add([&](std::size_t i) { return weights[i * biases.size() + j] / biases[j]; });
  if (const auto common = common_sample(weights, biases); !common.empty())
    add([&](std::size_t i) { return common[i]; });
  return candidates;
}

std::vector<double> SampleRecovery::common_sample(std::span<const double> weights,
                                                  std::span<const double> biases) const {
  const std::size_t units = biases.size();
  RankOne fit = fit_rank_one(weights, units);
  double squares = 0, products = 0, largest = 0, sum = 0;
  for (std::size_t j = 0; j < units; ++j)
    if (biases[j] != 0) {
      products += biases[j] * fit.columns[j];
      squares += fit.columns[j] * fit.columns[j];
    }
  for (const double value : fit.rows) {
    largest = std::max(largest, std::abs(value));
    sum += value;
  }
  if (largest == 0) return {};
  // Without biases the scale is unknown, and taken to be that of a sample that has the largest
  // value.
  const double scale = products != 0 ? squares / products
                                     : std::copysign(static_cast<double>(highest_), sum) / largest;
  for (double& value : fit.rows) value *= scale;
  return fit.rows;
}

/// Models take channels last, and data sets have them first.
std::size_t SampleRecovery::input_of(std::size_t feature) const {
  const auto channels = static_cast<std::size_t>(data_.channels),
             pixels = data_.feature_count() / channels;
  return feature % pixels * channels + feature / pixels;
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
  if (data_.classes < 2 || !last.gives_outputs || last.shape != std::vector<int>{data_.classes})
    return std::nullopt;
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
