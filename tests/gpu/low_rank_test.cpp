// Products of the matrices of a row with vectors, and updates of rank 1: the formulas, and that
// bits depend on values alone.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "gpu/cpu_device.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

template <class Real>
std::vector<Real> normal_values(std::size_t count, std::uint64_t stream) {
  RandomStream random(6, kNoPeer, Purpose::test, stream);
  std::vector<Real> values(count);
  for (Real& value : values) value = static_cast<Real>(random.next_normal());
  return values;
}

/// Matrices of every kind of shape behind each other, with a gap.
const std::vector<MatrixShape> kMatrices{{0, 3, 2},    {6, 7, 1},   {13, 1, 5},
                                         {20, 20, 33}, {680, 1, 1}, {681, 300, 17}};
constexpr std::size_t kLength = 681 + 300 * 17;

std::size_t total(bool left, std::size_t (MatrixShape::*length)(bool) const) {
  std::size_t sum = 0;
  for (const MatrixShape& shape : kMatrices) sum += (shape.*length)(left);
  return sum;
}

template <class Real>
struct LowRankProduct {
  LowRankProduct(std::vector<Real> x_in, bool left_in, std::vector<Real> directions_in,
                 RandomSigns signs = {}, int threads = 1)
      : x(std::move(x_in)),
        left(left_in),
        directions(std::move(directions_in)),
        products(total(left, &MatrixShape::product)) {
    const ProjectRequest<Real> request{x.data(),          x.size(),        kMatrices, left,
                                       directions.data(), products.data(), signs};
    BasicCpuDevice<Real>(threads).execute(std::span(&request, 1));
  }
  std::vector<Real> x;
  bool left;
  std::vector<Real> directions, products;
};

template <class Real>
std::vector<Real> random_directions(bool left) {
  return normal_values<Real>(total(left, &MatrixShape::direction), left ? 7 : 8);
}

}  // namespace

TEST_CASE_TEMPLATE("products: matrices times unit vectors, from either side, and vectors whole",
                   Real, float, double) {
  const double roundings = sizeof(Real) == 4 ? 1e-5 : 1e-13;
  for (const bool left : {false, true}) {
    CAPTURE(left);
    const auto given = random_directions<Real>(left);
    const LowRankProduct<Real> product(normal_values<Real>(kLength, 1), left, given);
    for_each_matrix(
        kMatrices, left,
        [&](const MatrixShape& shape, std::size_t direction, std::size_t at, std::size_t) {
          const Real* matrix = product.x.data() + shape.offset;
          const Real* out = product.products.data() + at;
          if (shape.is_vector()) {
            for (std::size_t i = 0; i < shape.length(); ++i) CHECK(out[i] == matrix[i]);
            return;
          }
          double norm = 0;
          for (std::size_t i = 0; i < shape.direction(left); ++i)
            norm = std::hypot(norm, static_cast<double>(given[direction + i]));
          for (std::size_t i = 0; i < shape.direction(left); ++i)
            CHECK(static_cast<double>(product.directions[direction + i]) ==
                  doctest::Approx(static_cast<double>(given[direction + i]) / norm).epsilon(1e-6));
          for (std::size_t k = 0; k < shape.product(left); ++k) {
            double sum = 0;
            for (std::size_t i = 0; i < shape.direction(left); ++i)
              sum += static_cast<double>(product.directions[direction + i]) *
                     static_cast<double>(left ? matrix[i * shape.columns + k]
                                              : matrix[k * shape.columns + i]);
            CHECK(std::abs(static_cast<double>(out[k]) - sum) < roundings);
          }
        });
  }
}

TEST_CASE("a direction without length, or not finite, becomes random signs of the stream") {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const bool left : {false, true})
    for (const float value : {0.0F, infinite, std::nanf("")}) {
      std::vector<float> directions(total(left, &MatrixShape::direction), value);
      const RandomSigns signs{.seed = 5, .peer = 2, .step = 9};
      const LowRankProduct<float> product(normal_values<float>(kLength, 1), left, directions,
                                          signs);
      int minus = 0;
      for_each_matrix(
          kMatrices, left,
          [&](const MatrixShape& shape, std::size_t direction, std::size_t, std::size_t) {
            const std::size_t length = shape.direction(left);
            for (std::size_t i = direction; i < direction + length; ++i) {
              CHECK(std::abs(product.directions[i]) ==
                    static_cast<float>(1 / std::sqrt(static_cast<double>(length))));
              CHECK((product.directions[i] < 0) == (random_sign(signs.key(), i) < 0));
              minus += product.directions[i] < 0 ? 1 : 0;
            }
          });
      const auto all = static_cast<int>(directions.size());
      CHECK(minus > all / 4);
      CHECK(minus < 3 * all / 4);
      const LowRankProduct<float> again(normal_values<float>(kLength, 1), left, directions,
                                        {5, 2, 10});
      CHECK(again.directions != product.directions);
    }
  // Tiny directions keep theirs.
  std::vector<float> tiny(total(false, &MatrixShape::direction), 1e-30F);
  const LowRankProduct<float> product(normal_values<float>(kLength, 1), false, tiny);
  CHECK(product.directions[0] == doctest::Approx(1 / std::sqrt(2.0)));
}

TEST_CASE_TEMPLATE("two ends move by opposite terms of rank 1, and keep the next direction", Real,
                   float, double) {
  const double roundings = sizeof(Real) == 4 ? 1e-5 : 1e-13;
  for (const bool left : {false, true}) {
    CAPTURE(left);
    const auto given = random_directions<Real>(left);
    std::vector<LowRankProduct<Real>> ends;
    for (const std::uint64_t end : {1, 2})
      ends.emplace_back(normal_values<Real>(kLength, end), left, given);
    std::vector<std::vector<Real>> moved, next;
    for (const std::size_t end : {0, 1}) {
      const LowRankProduct<Real>&own = ends[end], &other = ends[1 - end];
      moved.push_back(own.x);
      next.emplace_back(total(!left, &MatrixShape::direction));
      const AddProductRequest<Real> request{.x = moved.back().data(),
                                            .length = kLength,
                                            .matrices = kMatrices,
                                            .left = left,
                                            .directions = own.directions.data(),
                                            .own = own.products.data(),
                                            .theirs = other.products.data(),
                                            .next = next.back().data(),
                                            .reversed = end == 1,
                                            .factor = Real(0.25)};
      BasicCpuDevice<Real>(2).execute(std::span(&request, 1));
    }
    CHECK(next[0] == next[1]);
    for_each_matrix(
        kMatrices, left,
        [&](const MatrixShape& shape, std::size_t direction, std::size_t product,
            std::size_t at_next) {
          for (std::size_t k = 0; k < shape.length(); ++k) {
            const std::size_t i = k / shape.columns, j = k % shape.columns;
            const std::size_t at = shape.is_vector() ? k : left ? j : i;
            const double difference = static_cast<double>(ends[1].products[product + at]) -
                                      static_cast<double>(ends[0].products[product + at]);
            const double along =
                shape.is_vector()
                    ? 1
                    : static_cast<double>(ends[0].directions[direction + (left ? i : j)]);
            const std::size_t place = shape.offset + k;
            for (const std::size_t end : {0, 1}) {
              const double change =
                  static_cast<double>(moved[end][place]) - static_cast<double>(ends[end].x[place]);
              CHECK(std::abs(change - (end == 0 ? 0.25 : -0.25) * difference * along) < roundings);
            }
          }
          for (std::size_t k = 0; k < shape.direction(!left); ++k)
            CHECK(next[0][at_next + k] ==
                  ends[1].products[product + k] - ends[0].products[product + k]);
        });
    for (std::size_t k = 13 + 5; k < 20; ++k) CHECK(moved[0][k] == ends[0].x[k]);  // the gap
  }
}
