// What a peer's private gradients (train/privacy/private_gradient.hpp) tell about one training
// sample: the ε of (ε, δ)-differential privacy after a number of steps.
//
// A step is the sampled Gaussian mechanism: each sample enters the batch with probability q, and
// the sum of the clipped gradients gets normal noise of deviation σC in each coordinate, where C is
// the largest norm of a clipped gradient. The number of samples is known
// to everybody; what is hidden is whether one of them is what it is, or one without a gradient. The
// Rényi divergence of order α of a step is that of Mironov, Talwar and Zhang 2019
// (arXiv:1908.10530):
//   RDP(α) = log A_α / (α − 1),  A_α = E_{z ~ N(0, σ²)} (1 − q + q exp((2z − 1) / 2σ²))^α.
// Divergences of steps add, and with T steps, for any α (Canonne, Kamath and Steinke 2020, Prop.
// 12):
//   ε ≤ T · RDP(α) + log(1 − 1/α) − log(αδ) / (α − 1).
// What is computed from the noisy sums, here the whole run of a peer and of its neighbours, tells
// no more. ε is an upper bound, which assumes that everybody sees every step; numerical accountants
// find a few percent less.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gossamer::theory {

/// Pure. Thread: any.
class PrivacyAccountant {
 public:
  /// `sampling`: q in (0, 1]. `noise_multiplier`: σ, at least kLeastNoise.
  PrivacyAccountant(double sampling, double noise_multiplier);

  /// ε ≥ 0 after `steps` steps, at `delta` in (0, 1).
  double epsilon(std::uint64_t steps, double delta) const;

 private:
  std::vector<double> divergences_;  ///< of a step, by order
};

/// The range of noise multipliers. Below it ε is in the thousands, and means nothing.
inline constexpr double kLeastNoise = 0.05, kMostNoise = 1e6;

/// The smallest noise multiplier, to a ten-thousandth, with at most `epsilon` after `steps` steps.
/// None: that needs more than kMostNoise.
std::optional<double> noise_multiplier_for(double epsilon, double delta, double sampling,
                                           std::uint64_t steps);

}  // namespace gossamer::theory
