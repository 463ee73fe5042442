// CPU time, which other processes on the machine do not affect, and the median of a sample with its
// confidence interval.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <vector>

namespace gossamer::peer {

/// CPU seconds that this process has used.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double cpu_seconds_of(Work work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

/// The median of a sample, and its confidence interval at a level of at least 95 %: two order
/// statistics, of 9 values the 2nd and the 8th.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
};

/// `values` has at least 6 elements; there is no such interval for fewer.
inline MedianInterval median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size(), half = n / 2;
  // The rank r (from 0) with P(Binomial(n, 1/2) ≤ r) ≤ 2.5 %, and its mirror image.
  double term = 1, below = 0;
  for (std::size_t i = 0; i < n; ++i) term /= 2;
  std::size_t rank = 0;
  for (std::size_t r = 0;; ++r) {
    below += term;
    if (below > 0.025) break;
    rank = r;
    term *= static_cast<double>(n - r) / static_cast<double>(r + 1);
  }
  return {n % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]), values[rank],
          values[n - 1 - rank]};
}

}  // namespace gossamer::peer
