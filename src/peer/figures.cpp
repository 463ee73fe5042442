#include "peer/figures.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "base/hash.hpp"
#include "base/philox.hpp"

namespace gossamer::peer {

std::vector<double> mean_row(const RowViews& rows) {
  std::vector<double> mean(rows.front().size());
  for (std::span<const float> row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) mean[k] += row[k];
  for (double& value : mean) value /= static_cast<double>(rows.size());
  return mean;
}

double consensus_distance(const RowViews& rows, std::span<const double> mean) {
  double sum = 0;
  for (std::span<const float> row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) sum += (row[k] - mean[k]) * (row[k] - mean[k]);
  return std::sqrt(sum / static_cast<double>(rows.size()));
}

double distance_to_optimum(const RowViews& rows, std::span<const double> optimum) {
  double sum = 0, square = 0;
  for (std::span<const float> row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) sum += (row[k] - optimum[k]) * (row[k] - optimum[k]);
  for (double value : optimum) square += value * value;
  if (sum == 0) return 0;
  return std::sqrt(sum / static_cast<double>(rows.size())) / std::sqrt(square);
}

std::vector<double> sketch(std::span<const float> row, std::uint64_t seed) {
  std::vector<double> buckets(kSketchBuckets);
  RandomStream random(seed, kNoPeer, Purpose::sketch);
  for (float value : row) {
    const std::uint32_t draw = random.next_u32();
    const double sign = (draw & 1) != 0 ? -1.0 : 1.0;
    buckets[(draw >> 1) % kSketchBuckets] += sign * value;
  }
  return buckets;
}

double estimated_consensus_distance(const std::vector<std::vector<double>>& sketches) {
  double sum = 0;
  for (std::size_t bucket = 0; bucket < kSketchBuckets; ++bucket) {
    double mean = 0;
    for (const auto& sketch : sketches) mean += sketch[bucket];
    mean /= static_cast<double>(sketches.size());
    for (const auto& sketch : sketches) sum += (sketch[bucket] - mean) * (sketch[bucket] - mean);
  }
  return std::sqrt(sum / static_cast<double>(sketches.size()));
}

std::string final_hash(const std::vector<std::string>& row_hashes) {
  std::string text;
  for (const std::string& hash : row_hashes) text += hash + "\n";
  return hash_hex(text);
}

}  // namespace gossamer::peer
