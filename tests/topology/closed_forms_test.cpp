// The gaps that are known in closed form, and the exact averages.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "tests/topology/test_util.hpp"

using namespace gossamer::topology;
using namespace gossamer::topology::test;

TEST_CASE("ring, weights 1/3: the gap is 2/3 (1 − cos 2π/n)") {
  for (int n = 3; n <= 64; ++n) {
    CAPTURE(n);
    const double expected = 2.0 / 3 * (1 - std::cos(2 * std::numbers::pi / n));
    CHECK(std::abs(network("ring", n).gap() - expected) < 1e-12);
    CHECK(std::abs(network("ring", n).uniform().gap() - expected) < 1e-12);
  }
}

TEST_CASE("complete: the gap is 1, lazy 1/2") {
  for (int n = 2; n <= 64; ++n) {
    CAPTURE(n);
    CHECK(std::abs(network("complete", n).gap() - 1) < 1e-12);
    CHECK(std::abs(network("complete", n).lazy().gap() - 0.5) < 1e-12);
  }
}

TEST_CASE("hypercube, weights 1/(d + 1): the gap is 2/(1 + log2 n)") {
  for (int dimension = 1; dimension <= 8; ++dimension) {
    CAPTURE(dimension);
    CHECK(std::abs(network("hypercube", 1 << dimension).gap() - 2.0 / (1 + dimension)) < 1e-12);
    CHECK(std::abs(network("hypercube", 1 << dimension).uniform().gap() - 2.0 / (1 + dimension)) <
          1e-12);
  }
}

TEST_CASE("star, Metropolis: the gap is 1/n") {
  for (int n = 3; n <= 64; ++n) {
    CAPTURE(n);
    CHECK(std::abs(network("star", n).gap() - 1.0 / n) < 1e-12);
  }
}

TEST_CASE("path, weights 1/3: the gap is 2/3 (1 − cos π/n)") {
  for (int n = 3; n <= 64; ++n) {
    CAPTURE(n);
    CHECK(std::abs(network("path", n).gap() - 2.0 / 3 * (1 - std::cos(std::numbers::pi / n))) <
          1e-12);
  }
}

TEST_CASE("torus, weights 1/5: the gap is that of its longer ring, 2/5 (1 − cos 2π/cols)") {
  for (const auto& [rows, cols] : {std::pair{4, 4}, {4, 5}, {5, 8}, {8, 8}, {6, 11}}) {
    CAPTURE(rows * cols);
    // Eigenvalues (1 + 2 cos a + 2 cos b)/5; the lowest, −3/5 at a = b = π, binds only where both
    // rings are tiny.
    const double expected = 2.0 / 5 * (1 - std::cos(2 * std::numbers::pi / cols));
    const double gap = network("torus", rows * cols).set("rows", rows).set("cols", cols).gap();
    CHECK(std::abs(gap - std::min(expected, 2.0 / 5)) < 1e-12);
  }
}

TEST_CASE(
    "one-peer exponential, n a power of two: a period is exactly the average, wherever it begins") {
  for (int n = 1; n <= 256; n *= 2) {
    CAPTURE(n);
    const auto schedule = network("one_peer_exponential", n).schedule();
    const auto period = static_cast<Round>(schedule->period());
    CHECK(period == static_cast<Round>(n < 3 ? 1 : std::lround(std::log2(n))));
    for (Round begin = 0; begin < period; ++begin) {
      Eigen::MatrixXd product = Eigen::MatrixXd::Identity(n, n);
      for (Round t = begin; t < begin + period; ++t) product = dense(*schedule->at(t)) * product;
      CHECK((product.array() == 1.0 / n).all());
    }
    CHECK(spectral_gap(*schedule) == 1);
  }
}

// Circulant matrices commute and share their eigenvectors: λ_k(P) = Π_t (1 + ω^{−k 2^t})/2, ω =
// e^{2πi/n}.
TEST_CASE("one-peer exponential, any n: the gap is that of the product of circulants") {
  for (int n = 3; n <= 64; ++n) {
    CAPTURE(n);
    const int period = network("one_peer_exponential", n).schedule()->period();
    double radius = 0;
    for (int k = 1; k < n; ++k) {
      double modulus = 1;
      for (int t = 0; t < period; ++t)
        modulus *= std::abs(std::cos(std::numbers::pi * ((k << t) % n) / n));
      radius = std::max(radius, modulus);
    }
    const bool power_of_two =
        (n & (n - 1)) == 0;  // the product above is then 0 only up to rounding
    const double expected = power_of_two ? 1 : 1 - std::pow(radius, 1.0 / period);
    CHECK(std::abs(network("one_peer_exponential", n).gap() - expected) < 1e-12);
  }
}
