// Contiguous slices of a row: a step of ring all-reduce sends one, and each of several servers owns
// one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace gossamer::gossip {

/// Values begin … end−1 of a row.
struct RowSlice {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// Slice k (modulo n) of n nearly equal ones of d values; whole cache lines, so that slices do not
/// share one. Empty if there are fewer lines than slices.
inline RowSlice row_slice(std::size_t d, int k, int n) {
  constexpr std::size_t kLine = 16;
  const std::size_t lines = (d + kLine - 1) / kLine;
  const auto index = static_cast<std::size_t>(((k % n) + n) % n),
             parts = static_cast<std::size_t>(n);
  return {std::min(d, index * lines / parts * kLine),
          std::min(d, (index + 1) * lines / parts * kLine)};
}
inline std::span<float> row_slice(std::span<float> row, int k, int n) {
  const RowSlice slice = row_slice(row.size(), k, n);
  return row.subspan(slice.begin, slice.size());
}

}  // namespace gossamer::gossip
