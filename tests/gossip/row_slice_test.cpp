// Slices of rows, and what a worker that holds a part of a model has of them.
#include "gossip/row_slice.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace gossamer::gossip;

TEST_CASE("A worker's slices are those of the model's row, as far as it has them") {
  constexpr std::size_t length = 1000;
  // Columns of a matrix, a tensor that is missing, and a whole one.
  std::vector<RowPart::Run> runs;
  std::vector<std::size_t> held;  // by place in the worker's row: place in the model's
  const auto add = [&](std::size_t whole, std::size_t values) {
    runs.push_back({whole, held.size(), values});
    for (std::size_t k = 0; k < values; ++k) held.push_back(whole + k);
  };
  for (std::size_t row = 0; row < 20; ++row) add(7 + 20 * row, 9);
  add(700, 300);
  const RowPart part(length, runs);
  for (const int n : {1, 2, 3, 7, 64, 100}) {
    std::size_t next = 0;
    for (int k = 0; k < n; ++k) {
      const RowSlice whole = row_slice(length, k, n), own = part.slice(k, n);
      CHECK(own.begin == next);
      next = own.end;
      for (std::size_t place = own.begin; place < own.end; ++place) {
        CHECK(held[place] >= whole.begin);
        CHECK(held[place] < whole.end);
      }
      CHECK(part.slice(k - n, n).begin == own.begin);
      CHECK(part.slice(k + n, n).end == own.end);
    }
    CHECK(next == held.size());
  }
}

TEST_CASE("A part that holds the whole row has its slices") {
  const RowPart part(333, {{0, 0, 100}, {100, 100, 233}});
  for (int k = 0; k < 5; ++k) {
    CHECK(part.slice(k, 5).begin == row_slice(333, k, 5).begin);
    CHECK(part.slice(k, 5).end == row_slice(333, k, 5).end);
  }
}
