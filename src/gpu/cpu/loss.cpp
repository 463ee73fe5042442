// Losses: their sums in double, and each sample's share of the gradient in the outputs.
#include <cmath>

#include "gpu/cpu/executor.hpp"

namespace gossamer::gpu {

/// With p = softmax(z): ℓ = −log p_label = log Σ e^{z − max} − (z_label − max), ∂ℓ/∂z = p −
/// onehot(label).
template <class Real>
void softmax_cross_entropy(const Real* outputs, int batch, int classes, const std::int32_t* labels,
                           const std::uint32_t* samples, Real share, Real* gradient,
                           LossSums& sums) {
  constexpr int kStack = 256;
  Real on_stack[kStack];
  std::vector<Real> on_heap(
      gradient == nullptr && classes > kStack ? static_cast<std::size_t>(classes) : 0);
  for (int i = 0; i < batch; ++i) {
    const Real* z = outputs + static_cast<std::ptrdiff_t>(i) * classes;
    const std::int32_t label = labels[samples[i]];
    Real* p = gradient != nullptr ? gradient + static_cast<std::ptrdiff_t>(i) * classes
                                  : (classes > kStack ? on_heap.data() : on_stack);
    int best = 0;
    for (int c = 1; c < classes; ++c)
      if (z[c] > z[best]) best = c;
    for (int c = 0; c < classes; ++c) p[c] = z[c] - z[best];
    kernels<Real>().exponential(p, static_cast<std::size_t>(classes));
    Real sum = 0;
    for (int c = 0; c < classes; ++c) sum += p[c];
    const double loss = std::log(static_cast<double>(sum)) -
                        (static_cast<double>(z[label]) - static_cast<double>(z[best]));
    sums.loss += loss;
    // A NaN among the outputs makes the loss NaN, and no comparison with it finds a largest output.
    sums.hits += best == label && !std::isnan(loss) ? 1 : 0;
    if (gradient == nullptr) continue;
    const Real scale = share / sum;
    for (int c = 0; c < classes; ++c) p[c] *= scale;
    p[label] -= share;
  }
}

template <class Real>
void squared_error(const Real* outputs, int batch, const float* targets,
                   const std::uint32_t* samples, Real share, Real* gradient, LossSums& sums) {
  for (int i = 0; i < batch; ++i) {
    const Real error = outputs[i] - static_cast<Real>(targets[samples[i]]);
    sums.loss += 0.5 * static_cast<double>(error) * static_cast<double>(error);
    if (gradient != nullptr) gradient[i] = share * error;
  }
}

#define GOSSAMER_LOSSES(Real)                                                                    \
  template void softmax_cross_entropy(const Real*, int, int, const std::int32_t*,                \
                                      const std::uint32_t*, Real, Real*, LossSums&);             \
  template void squared_error(const Real*, int, const float*, const std::uint32_t*, Real, Real*, \
                              LossSums&)
GOSSAMER_LOSSES(float);
GOSSAMER_LOSSES(double);

}  // namespace gossamer::gpu
