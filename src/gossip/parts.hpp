// A row cut into contiguous parts: what a step of ring all-reduce sends, and the keys that one of
// several servers owns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace gossamer::gossip {

/// Values begin … end−1 of a row.
struct Part {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// Part k (modulo n) of n nearly equal ones of d values; whole cache lines, so that parts do not
/// share one. Empty where there are fewer lines than parts.
inline Part part_of(std::size_t d, int k, int n) {
  constexpr std::size_t kLine = 16;
  const std::size_t lines = (d + kLine - 1) / kLine;
  const auto index = static_cast<std::size_t>(((k % n) + n) % n),
             parts = static_cast<std::size_t>(n);
  return {std::min(d, index * lines / parts * kLine),
          std::min(d, (index + 1) * lines / parts * kLine)};
}
inline std::span<float> part_of(std::span<float> row, int k, int n) {
  const Part part = part_of(row.size(), k, n);
  return row.subspan(part.begin, part.size());
}

}  // namespace gossamer::gossip
