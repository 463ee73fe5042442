// Element-wise sums of order statistics (gpu/row_requests.hpp, OrderStatisticsRequest).
#include <algorithm>
#include <vector>

#include "gpu/cpu/rows.hpp"

namespace gossamer::gpu {
namespace {

/// Values of a row that are sorted together, so that every comparison is one of whole vectors.
constexpr std::size_t kTile = 64;

/// Sorts each column of tile [rows, kTile] by odd-even transposition, which keeps the order of
/// equal values.
template <class Real>
void sort_columns(Real* tile, std::size_t rows) {
  for (std::size_t pass = 0; pass < rows; ++pass)
    for (std::size_t r = pass % 2; r + 1 < rows; r += 2) {
      Real *upper = tile + r * kTile, *lower = upper + kTile;
      for (std::size_t l = 0; l < kTile; ++l) {
        const Real a = upper[l], b = lower[l];
        upper[l] = b < a ? b : a;
        lower[l] = b < a ? a : b;
      }
    }
}

}  // namespace

template <class Real>
std::size_t parts(const OrderStatisticsRequest<Real>& r) {
  return (r.length + kTile - 1) / kTile;
}

template <class Real>
void run_parts(const OrderStatisticsRequest<Real>& r, std::size_t first, std::size_t last) {
  std::vector<Real> tile(r.rows.size() * kTile);
  for (std::size_t begin = first * kTile; begin < std::min(r.length, last * kTile);
       begin += kTile) {
    const std::size_t length = std::min(kTile, r.length - begin);
    for (std::size_t k = 0; k < r.rows.size(); ++k)
      std::copy_n(r.rows[k] + begin, length, tile.data() + k * kTile);
    sort_columns(tile.data(), r.rows.size());
    double sums[kTile] = {};
    for (std::size_t k = r.first; k < r.first + r.count; ++k)
      for (std::size_t l = 0; l < length; ++l)
        sums[l] += static_cast<double>(tile[k * kTile + l]) - static_cast<double>(r.x[begin + l]);
    for (std::size_t l = 0; l < length; ++l)
      r.out[begin + l] =
          static_cast<Real>(static_cast<double>(r.x[begin + l]) + r.factor * sums[l]);
  }
}

template std::size_t parts(const OrderStatisticsRequest<float>&);
template std::size_t parts(const OrderStatisticsRequest<double>&);
template void run_parts(const OrderStatisticsRequest<float>&, std::size_t, std::size_t);
template void run_parts(const OrderStatisticsRequest<double>&, std::size_t, std::size_t);

}  // namespace gossamer::gpu
