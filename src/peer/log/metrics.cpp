#include "peer/log/metrics.hpp"

#include <algorithm>
#include <cmath>

#include "base/hash.hpp"
#include "net/tls/base64.hpp"

namespace gossamer::peer {

std::vector<double> mean_row(const RowViews& rows) {
  std::vector<double> mean(rows.front().size());
  for (std::span<const float> row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) mean[k] += row[k];
  for (double& value : mean) value /= static_cast<double>(rows.size());
  return mean;
}

ConsensusDistance consensus_distance(const RowViews& rows, std::span<const double> mean) {
  ConsensusDistance distance;
  double sum = 0;
  for (std::span<const float> row : rows) {
    double own = 0;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const double square = (row[k] - mean[k]) * (row[k] - mean[k]);
      sum += square;
      own += square;
    }
    distance.by_peer.push_back(std::sqrt(own));
  }
  distance.all = std::sqrt(sum / static_cast<double>(rows.size()));
  return distance;
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

ConsensusDistance estimated_consensus_distance(const std::vector<std::vector<double>>& sketches) {
  ConsensusDistance distance;
  std::vector<double> own(sketches.size(), 0);
  double sum = 0;
  for (std::size_t k = 0; k < sketches.front().size(); ++k) {
    double mean = 0;
    for (const auto& sketch : sketches) mean += sketch[k];
    mean /= static_cast<double>(sketches.size());
    for (std::size_t i = 0; i < sketches.size(); ++i) {
      const double square = (sketches[i][k] - mean) * (sketches[i][k] - mean);
      sum += square;
      own[i] += square;
    }
  }
  for (const double square : own) distance.by_peer.push_back(std::sqrt(square));
  distance.all = std::sqrt(sum / static_cast<double>(sketches.size()));
  return distance;
}

std::string encode_sketch(std::span<const double> sketch) {
  std::vector<float> values;
  for (const double value : sketch) values.push_back(static_cast<float>(value));
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return {};
  return net::encode_base64(std::as_bytes(std::span(values)));
}

std::vector<double> decode_sketch(const std::string& text) {
  const auto bytes = net::decode_base64(text);
  if (!bytes || bytes->size() % sizeof(float) != 0) return {};
  std::vector<float> values(bytes->size() / sizeof(float));
  std::ranges::copy(*bytes, std::as_writable_bytes(std::span(values)).begin());
  return {values.begin(), values.end()};
}

std::string final_hash(const std::vector<std::string>& row_hashes) {
  std::string text;
  for (const std::string& hash : row_hashes) text += hash + "\n";
  return hash_hex(text);
}

}  // namespace gossamer::peer
