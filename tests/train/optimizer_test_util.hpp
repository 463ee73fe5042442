// Vocabulary of the tests of optimizers: the papers' recurrences, one coordinate at a time, in
// double with the library's pow and sqrt, and a problem with simple gradients.
#pragma once

#include <cmath>
#include <vector>

#include "gpu/device.hpp"

namespace gossamer::train {

/// One coordinate under an optimizer.
struct Coordinate {
  double x = 0, first = 0, second = 0;

  /// Step number `step` (0, 1, …) with the loss's gradient g: PyTorch's SGD; Kingma and Ba 2015,
  /// Alg. 1; Loshchilov and Hutter 2019, Alg. 2.
  void take(const gpu::UpdateRule& rule, double rate, int step, double g) {
    using Kind = gpu::UpdateRule::Kind;
    if (rule.kind != Kind::adamw) g += rule.weight_decay * x;
    if (rule.kind == Kind::sgd) {
      first = rule.momentum * first + g;
      x -= rate * (rule.nesterov ? g + rule.momentum * first : first);
      return;
    }
    first = rule.beta1 * first + (1 - rule.beta1) * g;
    second = rule.beta2 * second + (1 - rule.beta2) * g * g;
    const double mean = first / (1 - std::pow(rule.beta1, step + 1)),
                 square = second / (1 - std::pow(rule.beta2, step + 1));
    const double decay = rule.kind == Kind::adamw ? rate * rule.weight_decay * x : 0;
    x -= rate * mean / (std::sqrt(square) + rule.epsilon) + decay;
  }
};

/// Gradient of ½ c (x − b)² for coordinate i, with c and b that differ between coordinates.
inline double pull(std::size_t i, double x) {
  const double curvature = 0.1 + static_cast<double>(i % 7),
               minimum = std::sin(static_cast<double>(i));
  return curvature * (x - minimum);
}

inline constexpr gpu::UpdateRule kAdam{
    .weight_decay = 1e-2, .kind = gpu::UpdateRule::Kind::adam, .beta1 = 0.8, .beta2 = 0.99};
inline constexpr gpu::UpdateRule kAdamW{.weight_decay = 0.1, .kind = gpu::UpdateRule::Kind::adamw};

}  // namespace gossamer::train
