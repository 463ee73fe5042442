// Distances between rows and order statistics: the formulas, and that bits depend on values alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gpu/cpu_device.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

const std::vector<std::size_t> kLengths{0, 1, 63, 64, 65, 255, 257, 4095, 4096, 4097, 20'001};

/// `count` rows of normal values, `offset` values off alignment.
template <class Real>
struct NormalRows {
  NormalRows(std::size_t count, std::size_t length, std::size_t offset = 0)
      : rows(count, length, offset) {
    for (std::size_t p = 0; p < count; ++p) {
      RandomStream random(4, static_cast<std::uint32_t>(p), Purpose::test);
      for (Real& value : rows.row(p)) value = static_cast<Real>(random.next_normal());
      addresses.push_back(rows.row(p).data());
    }
  }
  Rows<Real> rows;
  std::vector<const Real*> addresses;
};

template <class Real>
std::vector<double> distances(const NormalRows<Real>& from, bool to_first, int threads = 1) {
  DistancesRequest<Real> request{from.addresses, to_first, from.rows.length()};
  std::vector<double> result(request.pairs(), NAN);
  request.distances = result.data();
  BasicCpuDevice<Real>(threads).execute(std::span(&request, 1));
  return result;
}

/// Ranks first … first + count − 1 of five rows, with x = row 1.
template <class Real>
std::vector<Real> ranked(NormalRows<Real>& from, std::size_t first, std::size_t count,
                         int threads = 1) {
  std::vector<Real> out(from.rows.length());
  const OrderStatisticsRequest<Real> request{
      from.rows.row(1).data(),          out.data(), from.addresses, first, count,
      1.0 / static_cast<double>(count), out.size()};
  BasicCpuDevice<Real>(threads).execute(std::span(&request, 1));
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("distances: every pair, in order, or those of the first row", Real, float,
                   double) {
  for (const std::size_t length : kLengths) {
    CAPTURE(length);
    const NormalRows<Real> rows(4, length);
    const std::vector<double> all = distances(rows, false), of_first = distances(rows, true);
    REQUIRE(all.size() == 6);
    std::size_t next = 0;
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = i + 1; j < 4; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < length; ++k)
          sum += std::pow(
              static_cast<double>(rows.addresses[i][k]) - static_cast<double>(rows.addresses[j][k]),
              2);
        CHECK(all[next++] == doctest::Approx(sum).epsilon(1e-12));
      }
    CHECK(of_first == std::vector<double>(all.begin(), all.begin() + 3));
  }
}

TEST_CASE("distances: misaligned rows, any threads, any batch: the same bits") {
  const NormalRows<float> rows(5, 20'001);
  const auto expected = distances(rows, false);
  for (const std::size_t offset : {1, 3})
    for (const int threads : {1, 3})
      CHECK(distances(NormalRows<float>(5, 20'001, offset), false, threads) == expected);
  std::vector<std::vector<double>> pairs(10, std::vector<double>(1));
  std::vector<std::vector<const float*>> addresses;
  std::vector<DistancesRequest<float>> requests;
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = i + 1; j < 5; ++j)
      addresses.push_back({rows.addresses[j], rows.addresses[i]});
  for (std::size_t k = 0; k < 10; ++k)
    requests.push_back({addresses[k], true, 20'001, pairs[k].data()});
  CpuDevice(2).execute(requests);
  for (std::size_t k = 0; k < 10; ++k) CHECK(pairs[k][0] == expected[k]);
}

TEST_CASE_TEMPLATE("order statistics: the mean of the values of some ranks", Real, float, double) {
  for (const std::size_t length : kLengths) {
    CAPTURE(length);
    NormalRows<Real> rows(5, length);
    for (const auto& [first, count] : {std::pair(0, 5), std::pair(1, 3), std::pair(4, 1)}) {
      const auto out =
          ranked(rows, static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < length; ++i) {
        std::vector<double> column;
        for (const Real* row : rows.addresses) column.push_back(static_cast<double>(row[i]));
        std::ranges::sort(column);
        double mean = 0;
        for (int k = first; k < first + count; ++k)
          mean += column[static_cast<std::size_t>(k)] / count;
        REQUIRE(static_cast<double>(out[i]) == doctest::Approx(mean).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("order statistics: a single rank is a value of the rows, and equal rows a fixed point") {
  NormalRows<float> rows(5, 1000);
  const auto median = ranked(rows, 2, 1);
  for (std::size_t i = 0; i < 1000; ++i)
    CHECK(std::ranges::count_if(rows.addresses,
                                [&](const float* row) { return row[i] == median[i]; }) == 1);
  for (std::size_t p = 0; p < 5; ++p) std::ranges::copy(rows.rows.row(0), rows.rows.row(p).begin());
  for (const std::size_t count : {1, 2, 3, 5})
    CHECK(std::ranges::equal(ranked(rows, 0, count), rows.rows.row(0)));
}

TEST_CASE("order statistics: misaligned rows, any threads, pieces: the same bits") {
  NormalRows<float> rows(5, 20'001);
  const auto expected = ranked(rows, 1, 3);
  for (const std::size_t offset : {1, 3}) {
    NormalRows<float> misaligned(5, 20'001, offset);
    CHECK(ranked(misaligned, 1, 3, 3) == expected);
  }
  std::vector<float> out(20'001);
  for (std::size_t begin = 0; begin < out.size();) {
    const std::size_t length = std::min<std::size_t>(1 + begin % 700, out.size() - begin);
    std::vector<const float*> piece;
    for (const float* row : rows.addresses) piece.push_back(row + begin);
    const OrderStatisticsRequest<float> request{
        rows.rows.row(1).data() + begin, out.data() + begin, piece, 1, 3, 1.0 / 3, length};
    CpuDevice(1).execute(std::span(&request, 1));
    begin += length;
  }
  CHECK(out == expected);
}
