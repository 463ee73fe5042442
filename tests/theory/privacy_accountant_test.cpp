// ε of private gradients against Opacus, against closed forms, and the search for the noise that
// reaches an ε.
#include "theory/privacy_accountant.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace gossamer::theory;

namespace {

struct Reference {
  double sampling, noise;
  std::uint64_t steps;
  double delta, epsilon;
};

// compute_rdp() and get_privacy_spent() of Opacus 1.6.0 at the same orders. dp-accounting 0.6.0 is
// equal or up to 1.6 % above: it adds the terms of its series without their signs.
constexpr Reference kReferences[] = {
    {0.01, 1.1, 10000, 1e-5, 5.63199237},   {1.0 / 7, 1, 200, 1e-5, 16.1657407},
    {1, 20, 100, 1e-5, 2.16571566},         {0.25, 4, 1000, 1e-6, 11.8555716},
    {0.001, 0.7, 100000, 1e-7, 5.10868819}, {0.5, 0.8, 5, 1e-3, 8.37212735},
    {0.02, 0.4, 1000, 1e-5, 54.2533577},    {0.1, 0.2, 10, 1e-5, 93.1477785},
    {0.004, 50, 1000, 1e-5, 0.00678421636},
};

}  // namespace

TEST_CASE("epsilon is that of the reference accountant") {
  for (const Reference& reference : kReferences) {
    CAPTURE(reference.sampling);
    CAPTURE(reference.noise);
    const PrivacyAccountant accountant(reference.sampling, reference.noise);
    CHECK(accountant.epsilon(reference.steps, reference.delta) ==
          doctest::Approx(reference.epsilon).epsilon(1e-8));
  }
}

TEST_CASE("without sampling, a step is the Gaussian mechanism") {
  // RDP(α) = α / 2σ², so that ε is the least over α of the formula with T / 2σ² · α.
  const double sigma = 8, delta = 1e-6;
  double least = 1e9;
  for (double order = 1.05; order < 100; order += 0.001)
    least = std::min(least, 50 * order / (2 * sigma * sigma) + std::log1p(-1 / order) -
                                std::log(order * delta) / (order - 1));
  const double epsilon = PrivacyAccountant(1, sigma).epsilon(50, delta);
  CHECK(epsilon >= least);
  CHECK(epsilon <= least * 1.001);
}

TEST_CASE("epsilon grows with the steps and the sampling, and shrinks with the noise") {
  const PrivacyAccountant accountant(0.1, 1);
  CHECK(accountant.epsilon(0, 1e-5) == 0);
  double before = 0;
  for (std::uint64_t steps = 1; steps < 100000; steps *= 3) {
    CHECK(accountant.epsilon(steps, 1e-5) > before);
    before = accountant.epsilon(steps, 1e-5);
  }
  before = 0;
  for (const double sampling : {1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9, 0.999, 1.0}) {
    CAPTURE(sampling);
    CHECK(PrivacyAccountant(sampling, 1).epsilon(100, 1e-5) > before);
    before = PrivacyAccountant(sampling, 1).epsilon(100, 1e-5);
  }
  for (const double noise : {kLeastNoise, 0.1, 0.3, 1.0, 3.0, 30.0, 3000.0}) {
    CAPTURE(noise);
    const double epsilon = PrivacyAccountant(0.1, noise).epsilon(100, 1e-5);
    CHECK(std::isfinite(epsilon));
    if (noise > kLeastNoise) CHECK(epsilon <= before);
    before = epsilon;
  }
}

TEST_CASE("the noise for an epsilon reaches it, and not much less noise does") {
  for (const double epsilon : {0.5, 1.0, 8.0, 50.0}) {
    CAPTURE(epsilon);
    const auto noise = noise_multiplier_for(epsilon, 1e-5, 0.1, 1000);
    REQUIRE(noise.has_value());
    CHECK(PrivacyAccountant(0.1, *noise).epsilon(1000, 1e-5) <= epsilon);
    CHECK(PrivacyAccountant(0.1, *noise / 1.0002).epsilon(1000, 1e-5) > epsilon);
  }
  CHECK(noise_multiplier_for(1e9, 1e-5, 0.1, 10) == kLeastNoise);
  // However much the noise, the highest order leaves an ε of log(1 / αδ) / (α − 1).
  CHECK_FALSE(noise_multiplier_for(1e-6, 1e-5, 1, 1000).has_value());
}
