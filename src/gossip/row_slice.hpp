// Contiguous slices of a row: a step of ring all-reduce sends one, and each of several servers owns
// one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"

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

/// Which values of a model's row the row of a worker has, which holds a part of a cut model.
class RowPart {
 public:
  /// `values` adjacent values, which begin at `whole` in the model's row and at `own` in the
  /// worker's.
  struct Run {
    std::size_t whole = 0, own = 0, values = 0;
  };
  /// `length`: of the model's row. `runs`: ascending in both rows, without gaps in the worker's.
  RowPart(std::size_t length, std::vector<Run> runs) : length_(length), runs_(std::move(runs)) {
    for (std::size_t k = 1; k < runs_.size(); ++k) {
      const Run &before = runs_[k - 1], &run = runs_[k];
      GOSSAMER_CHECK(
          before.whole + before.values <= run.whole && before.own + before.values == run.own,
          "a worker's row has its values in another order than the model's");
    }
  }

  /// Values of the model's row, and of the worker's.
  std::size_t length() const { return length_; }
  std::size_t values() const { return runs_.empty() ? 0 : runs_.back().own + runs_.back().values; }
  const std::vector<Run>& runs() const { return runs_; }

  /// What the worker's row has of slice k (modulo n) of n of the model's row.
  RowSlice slice(int k, int n) const {
    const RowSlice whole = row_slice(length_, k, n);
    return {before(whole.begin), before(whole.end)};
  }

 private:
  /// How many values of the worker's row lie before value `whole` of the model's row.
  std::size_t before(std::size_t whole) const {
    const auto next = std::ranges::lower_bound(runs_, whole, {}, &Run::whole);
    if (next == runs_.begin()) return 0;
    const Run& last = *(next - 1);
    return last.own + std::min(last.values, whole - last.whole);
  }

  std::size_t length_;
  std::vector<Run> runs_;
};

}  // namespace gossamer::gossip
