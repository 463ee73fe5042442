#include "peer/figures.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

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

namespace {

/// y ← H y, H the Hadamard matrix of order y.size(), a power of two, scaled to be orthonormal.
void hadamard(std::span<double> y) {
  for (std::size_t half = 1; half < y.size(); half *= 2)
    for (std::size_t begin = 0; begin < y.size(); begin += 2 * half)
      for (std::size_t k = begin; k < begin + half; ++k) {
        const double a = y[k], b = y[k + half];
        y[k] = a + b;
        y[k + half] = a - b;
      }
  const double scale = 1 / std::sqrt(static_cast<double>(y.size()));
  for (double& value : y) value *= scale;
}

/// Random signs, 32 to a draw.
class Signs {
 public:
  explicit Signs(std::uint64_t seed) : random_(seed, kNoPeer, Purpose::sketch) {}
  double next() {
    if (left_ == 0) bits_ = random_.next_u32(), left_ = 32;
    const bool minus = ((bits_ >> --left_) & 1) != 0;
    return minus ? -1.0 : 1.0;
  }

 private:
  RandomStream random_;
  std::uint32_t bits_ = 0;
  int left_ = 0;
};

}  // namespace

std::vector<double> sketch(std::span<const float> row, std::uint64_t seed) {
  const std::size_t length = std::min(kSketchLength, std::bit_ceil(row.size()));
  std::vector<double> sum(length), block(length);
  Signs signs(seed);
  for (std::size_t begin = 0; begin < row.size(); begin += length) {
    const auto values = row.subspan(begin, std::min(length, row.size() - begin));
    std::fill(block.begin(), block.end(), 0.0);
    for (std::size_t k = 0; k < values.size(); ++k) block[k] = signs.next() * values[k];
    hadamard(block);
    for (std::size_t k = 0; k < length; ++k) sum[k] += signs.next() * block[k];
  }
  return sum;
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
