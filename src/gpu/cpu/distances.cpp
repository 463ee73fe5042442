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

// Block by block, so that all pairs find a block of a row in the cache.
template <class Real>
void run(const DistancesRequest<Real>& r) {
  std::fill_n(r.distances, r.pairs(), 0.0);
  for (std::size_t begin = 0; begin < r.length; begin += kDistanceBlock) {
    const std::size_t length = std::min(kDistanceBlock, r.length - begin);
    double* distance = r.distances;
    for (std::size_t i = 0; i < (r.to_first ? 1 : r.rows.size()); ++i)
      for (std::size_t j = i + 1; j < r.rows.size(); ++j)
        *distance++ += block_distance(r.rows[i] + begin, r.rows[j] + begin, length);
  }
}

template void run(const DistancesRequest<float>&);
template void run(const DistancesRequest<double>&);

}  // namespace gossamer::gpu
