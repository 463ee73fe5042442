#include "theory/privacy_accountant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace gossamer::theory {
namespace {

/// Orders α at which ε is computed: close together where a small ε is best, up to 1024 for runs
/// with much noise.
std::vector<double> make_orders() {
  std::vector<double> orders;
  for (int tenths = 11; tenths < 110; ++tenths) orders.push_back(tenths / 10.0);
  for (int order = 11; order < 64; ++order) orders.push_back(order);
  for (int order = 64; order <= 1024; order *= 2) orders.push_back(order);
  return orders;
}

const std::vector<double>& orders() {
  static const std::vector<double> all = make_orders();
  return all;
}

/// log(exp(a) + exp(b)).
double log_sum(double a, double b) {
  const double high = std::max(a, b);
  if (high == -std::numeric_limits<double>::infinity()) return high;
  return high + std::log1p(std::exp(std::min(a, b) - high));
}

/// log A_α of an integer α: the binomial sum of E (1 − q + q …)^α.
double log_moment_of_integer(double q, double sigma, int order) {
  double sum = -std::numeric_limits<double>::infinity();
  for (int k = 0; k <= order; ++k) {
    const double binomial =
        std::lgamma(order + 1.0) - std::lgamma(k + 1.0) - std::lgamma(order - k + 1.0);
    sum = log_sum(sum, binomial + k * std::log(q) + (order - k) * std::log1p(-q) +
                           k * (k - 1.0) / (2 * sigma * sigma));
  }
  return sum;
}

/// log A_α of any α: the integral over z by the trapezoidal rule, which converges exponentially for
/// an analytic integrand that decays on both sides. The integrand has its mass near 0 and near α.
double log_moment(double q, double sigma, double order) {
  const double step = sigma / 16, tails = 12 * sigma;
  const double variance = sigma * sigma;
  double sum = -std::numeric_limits<double>::infinity();
  for (double z = -tails; z <= order + tails; z += step)
    sum = log_sum(sum, order * log_sum(std::log1p(-q), std::log(q) + (2 * z - 1) / (2 * variance)) -
                           z * z / (2 * variance));
  return sum + std::log(step) - 0.5 * std::log(2 * M_PI * variance);
}

double divergence(double q, double sigma, double order) {
  if (q == 1) return order / (2 * sigma * sigma);
  const bool integer = order == std::floor(order);
  const double moment = integer ? log_moment_of_integer(q, sigma, static_cast<int>(order))
                                : log_moment(q, sigma, order);
  return std::max(0.0, moment / (order - 1));  // rounding may take it below 0
}

}  // namespace

PrivacyAccountant::PrivacyAccountant(double sampling, double noise_multiplier) {
  GOSSAMER_CHECK(sampling > 0 && sampling <= 1 && noise_multiplier >= kLeastNoise,
                 "a sampled Gaussian mechanism");
  for (const double order : orders())
    divergences_.push_back(divergence(sampling, noise_multiplier, order));
}

double PrivacyAccountant::epsilon(std::uint64_t steps, double delta) const {
  if (steps == 0) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < divergences_.size(); ++i) {
    const double order = orders()[i];
    least = std::min(least, static_cast<double>(steps) * divergences_[i] + std::log1p(-1 / order) -
                                std::log(order * delta) / (order - 1));
  }
  return std::max(0.0, least);
}

std::optional<double> noise_multiplier_for(double epsilon, double delta, double sampling,
                                           std::uint64_t steps) {
  const auto reaches = [&](double noise) {
    return PrivacyAccountant(sampling, noise).epsilon(steps, delta) <= epsilon;
  };
  double low = kLeastNoise, high = kLeastNoise;
  if (reaches(low)) return low;
  while (!reaches(high *= 2)) {
    if (high > kMostNoise) return std::nullopt;
    low = high;
  }
  while (high / low > 1.0001) (reaches(std::sqrt(low * high)) ? high : low) = std::sqrt(low * high);
  return high;
}

}  // namespace gossamer::theory
