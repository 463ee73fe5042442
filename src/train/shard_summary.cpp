#include "train/shard_summary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace gossamer::train {
namespace {

constexpr std::string_view kPeer = "{peer}";

}  // namespace

bool is_moment(double mean, double variance) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return std::abs(mean) <= kLargest && variance >= 0 && variance <= kLargest * kLargest;
}

bool is_shard_size(std::uint64_t samples) {
  return samples > 0 && samples <= std::numeric_limits<std::uint32_t>::max();
}

ShardSummary summarise(std::span<const double> rows, std::size_t width) {
  const std::size_t samples = rows.size() / width;
  GOSSAMER_CHECK(samples > 0, "a summary of no sample");
  const auto n = static_cast<double>(samples);
  ShardSummary summary{samples, std::vector<double>(width), std::vector<double>(width)};
  std::vector<bool> constant(width, true);
  for (std::size_t i = 0; i < samples; ++i)
    for (std::size_t f = 0; f < width; ++f) {
      summary.means[f] += rows[i * width + f] / n;
      constant[f] = constant[f] && rows[i * width + f] == rows[f];
    }
  for (std::size_t f = 0; f < width; ++f)
    if (constant[f]) summary.means[f] = rows[f];
  for (std::size_t i = 0; i < samples; ++i)
    for (std::size_t f = 0; f < width; ++f) {
      const double apart = rows[i * width + f] - summary.means[f];
      summary.variances[f] += apart * apart / n;
    }
  return summary;
}

/// Means and variances of groups as in T. F. Chan, G. H. Golub, R. J. LeVeque 1983, "Algorithms for
/// computing the sample variance", The American Statistician 37.
std::vector<FeatureScale> pooled_scales(std::span<const ShardSummary> shards) {
  double total = 0;
  std::size_t width = 0;
  for (const ShardSummary& shard : shards) {
    total += static_cast<double>(shard.samples);
    width = std::max(width, shard.means.size());
  }
  std::vector<FeatureScale> scales(width, {0, 0});
  for (std::size_t f = 0; f < width; ++f) {
    double mean = 0, variance = 0;
    for (const ShardSummary& shard : shards)
      if (shard.samples > 0) mean += static_cast<double>(shard.samples) / total * shard.means[f];
    bool constant = true;
    const ShardSummary* first = nullptr;
    for (const ShardSummary& shard : shards) {
      if (shard.samples == 0) continue;
      if (first == nullptr) first = &shard;
      constant = constant && shard.variances[f] == 0 && shard.means[f] == first->means[f];
      const double apart = shard.means[f] - mean;
      variance += static_cast<double>(shard.samples) / total * (shard.variances[f] + apart * apart);
    }
    const bool spread = !constant && variance > 0;  // not below what a double holds
    scales[f] = {mean, spread ? std::sqrt(variance) : std::numeric_limits<double>::infinity()};
  }
  return scales;
}

std::string file_of_peer(const std::string& text, int peer) {
  std::string file = text;
  const std::string id = std::to_string(peer);
  for (auto at = file.find(kPeer); at != std::string::npos; at = file.find(kPeer, at + id.size()))
    file.replace(at, kPeer.size(), id);
  return file;
}

Status check_file_of_peer(const std::string& key, const std::string& file, std::size_t hosted) {
  if (hosted < 2 || file.find(kPeer) != std::string::npos) return {};
  return invalid_error(
      fmt::format("{}: this process has {} peers, each with its own samples (data.partition = "
                  "own), and '{}' is one file: write {} where their files' names differ",
                  key, hosted, file, kPeer));
}

}  // namespace gossamer::train
