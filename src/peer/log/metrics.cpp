#include "peer/log/metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "net/tls/base64.hpp"

namespace gossamer::peer {

namespace {

/// The distances of `rows`, of float or double, from their mean. Calls with_mean(k, mean of values
/// k, k + 1, …) for one block after the other: a mean in double of a whole row would be twice the
/// size of the row.
template <class Row>
ConsensusDistance distances_from_mean(const std::vector<Row>& rows, auto&& with_mean) {
  constexpr std::size_t kBlock = 1024;
  std::array<double, kBlock> block;
  const std::size_t length = rows.front().size();
  std::vector<double> squares(rows.size(), 0);
  for (std::size_t begin = 0; begin < length; begin += kBlock) {
    const std::span<double> mean = std::span(block).first(std::min(kBlock, length - begin));
    std::ranges::fill(mean, 0);
    for (const Row& row : rows)
      for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += row[begin + k];
    for (double& value : mean) value /= static_cast<double>(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t k = 0; k < mean.size(); ++k) {
        const double difference = rows[i][begin + k] - mean[k];
        squares[i] += difference * difference;
      }
    with_mean(begin, std::span<const double>(mean));
  }
  ConsensusDistance distance;
  double sum = 0;
  for (const double square : squares) {
    sum += square;
    distance.by_peer.push_back(std::sqrt(square));
  }
  distance.all = std::sqrt(sum / static_cast<double>(rows.size()));
  return distance;
}

}  // namespace

ConsensusDistance consensus_distance(const RowViews& rows, std::span<float> average) {
  GOSSAMER_CHECK(average.size() == rows.front().size(), "the average is as long as a row");
  return distances_from_mean(rows, [&](std::size_t begin, std::span<const double> mean) {
    std::ranges::transform(mean, average.begin() + static_cast<std::ptrdiff_t>(begin),
                           [](double value) { return static_cast<float>(value); });
  });
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
  return distances_from_mean(sketches, [](std::size_t, std::span<const double>) {});
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
