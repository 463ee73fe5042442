// Squared distances between rows (gpu/row_requests.hpp, DistancesRequest).
#include <algorithm>

#include "gpu/cpu/rows.hpp"

namespace gossamer::gpu {
namespace {

/// Σ (a_i − b_i)² over one block of `length` ≤ kDistanceBlock values.
template <class Real>
double block_distance(const Real* a, const Real* b, std::size_t length) {
  double lanes[kDistanceLanes] = {};
  for (std::size_t begin = 0; begin < length; begin += kDistanceLanes) {
    const std::size_t count = std::min(kDistanceLanes, length - begin);
    for (std::size_t l = 0; l < count; ++l) {
      const double difference =
          static_cast<double>(a[begin + l]) - static_cast<double>(b[begin + l]);
      lanes[l] += difference * difference;
    }
  }
  for (std::size_t half = kDistanceLanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

}  // namespace

template <class Real>
std::size_t parts(const DistancesRequest<Real>& r) {
  return r.pairs();
}

// Block by block, so that all pairs find a block of a row in the cache.
template <class Real>
void run_parts(const DistancesRequest<Real>& r, std::size_t first, std::size_t last) {
  std::fill(r.distances + first, r.distances + last, 0.0);
  for (std::size_t begin = 0; begin < r.length; begin += kDistanceBlock) {
    const std::size_t length = std::min(kDistanceBlock, r.length - begin);
    std::size_t pair = 0;
    for (std::size_t i = 0; i < (r.to_first ? 1 : r.rows.size()); ++i)
      for (std::size_t j = i + 1; j < r.rows.size(); ++j, ++pair)
        if (pair >= first && pair < last)
          r.distances[pair] += block_distance(r.rows[i] + begin, r.rows[j] + begin, length);
  }
}

template std::size_t parts(const DistancesRequest<float>&);
template std::size_t parts(const DistancesRequest<double>&);
template void run_parts(const DistancesRequest<float>&, std::size_t, std::size_t);
template void run_parts(const DistancesRequest<double>&, std::size_t, std::size_t);

}  // namespace gossamer::gpu
