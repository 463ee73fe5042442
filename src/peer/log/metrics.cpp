#include "peer/log/metrics.hpp"

#include <algorithm>
#include <cmath>

#include "base/hash.hpp"

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
    for (std::size_t k = 0; k < row.size(); ++k)
      sum += (row[k] - optimum[k]) * (row[k] - optimum[k]);
  for (double value : optimum) square += value * value;
  if (sum == 0) return 0;
  return std::sqrt(sum / static_cast<double>(rows.size())) / std::sqrt(square);
}

double estimated_consensus_distance(const std::vector<std::vector<double>>& sketches) {
  double sum = 0;
  for (std::size_t k = 0; k < sketches.front().size(); ++k) {
    double mean = 0;
    for (const auto& sketch : sketches) mean += sketch[k];
    mean /= static_cast<double>(sketches.size());
    for (const auto& sketch : sketches) sum += (sketch[k] - mean) * (sketch[k] - mean);
  }
  return std::sqrt(sum / static_cast<double>(sketches.size()));
}

std::string final_hash(const std::vector<std::string>& row_hashes) {
  std::string text;
  for (const std::string& hash : row_hashes) text += hash + "\n";
  return hash_hex(text);
}

}  // namespace gossamer::peer
