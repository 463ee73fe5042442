// Group norm.
//
// Scratch: μ and 1/σ of each sample and channel (the channels of a group hold the same
// values), then a few rows of channels.
#include <algorithm>
#include <cmath>

#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {
namespace {

/// Replaces each channel's value by the total of its group.
template <class Real>
void group_totals(const GroupNormOperation& n, Real* values) {
  const int each = n.channels / n.groups;
  for (int g = 0; g < n.groups; ++g) {
    Real total = 0;
    for (int c = g * each; c < (g + 1) * each; ++c) total += values[c];
    for (int c = g * each; c < (g + 1) * each; ++c) values[c] = total;
  }
}

}  // namespace

template <class Real>
void forward(const GroupNormOperation& n, int batch, const Real* row, const Operands<Real>& at) {
  const int channels = n.channels;
  const std::size_t image = size(n.pixels) * size(channels);
  const Real share = Real(1) / static_cast<Real>(n.pixels * (channels / n.groups));
  Real* factor = at.scratch + 2 * size(batch) * size(channels);
  Real* term = factor + channels;
  for (int i = 0; i < batch; ++i) {
    const Real* x = at.x + size(i) * image;
    Real* y = at.y + size(i) * image;
    Real* mean = at.scratch + 2 * size(i) * size(channels);
    Real* inverse = mean + channels;
    std::fill_n(mean, 2 * channels, Real(0));
    kernels<Real>().column_sums(x, n.pixels, channels, mean);
    group_totals(n, mean);
    for (int c = 0; c < channels; ++c) mean[c] *= share;
    kernels<Real>().channel_products(x, mean, x, mean, n.pixels, channels, inverse);
    group_totals(n, inverse);
    for (int c = 0; c < channels; ++c) {
      inverse[c] =
          Real(1) / std::sqrt(inverse[c] * share + static_cast<Real>(GroupNormOperation::kEpsilon));
      factor[c] = row[n.scale + size(c)] * inverse[c];
      term[c] = row[n.shift + size(c)] - mean[c] * factor[c];
    }
    kernels<Real>().channel_affine(x, factor, term, y, n.pixels, channels);
    kernels<Real>().activate(n.activation, y, image);
  }
}

/// With N values in a group, A_c = Σ dy, B_c = Σ dy (x − μ), r = 1/σ:  dshift = A, dscale = r B,
/// dx = r scale dy − r (S₁ + x̂ S₂),  S₁ = Σ_group scale A / N,  S₂ = Σ_group scale r B / N.
template <class Real>
void backward(const GroupNormOperation& n, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at) {
  const int channels = n.channels;
  const std::size_t image = size(n.pixels) * size(channels);
  const Real share = Real(1) / static_cast<Real>(n.pixels * (channels / n.groups));
  Real* rows = at.scratch + 2 * size(batch) * size(channels);
  Real *a = rows, *b = rows + channels, *dy_factor = rows + 2 * channels,
       *x_factor = rows + 3 * channels;
  Real *term = rows + 4 * channels, *zero = rows + 5 * channels;
  std::fill_n(zero, channels, Real(0));
  at.start(gradient + n.scale, size(channels));
  at.start(gradient + n.shift, size(channels));
  kernels<Real>().activation_backward(n.activation, at.y, at.dy, size(batch) * image);
  for (int i = 0; i < batch; ++i) {
    const Real* x = at.x + size(i) * image;
    const Real* dy = at.dy + size(i) * image;
    const Real* mean = at.scratch + 2 * size(i) * size(channels);
    const Real* inverse = mean + channels;
    std::fill_n(a, 2 * channels, Real(0));
    kernels<Real>().column_sums(dy, n.pixels, channels, a);
    kernels<Real>().channel_products(x, mean, dy, zero, n.pixels, channels, b);
    for (int c = 0; c < channels; ++c) {
      const Real scale = row[n.scale + size(c)];
      gradient[n.shift + size(c)] += a[c];
      b[c] *= inverse[c];
      gradient[n.scale + size(c)] += b[c];
      dy_factor[c] = scale * inverse[c];
      a[c] *= scale * share;
      b[c] *= scale * share;
    }
    if (at.dx == nullptr) continue;
    group_totals(n, a);
    group_totals(n, b);
    for (int c = 0; c < channels; ++c) {
      x_factor[c] = -(inverse[c] * inverse[c] * b[c]);
      term[c] = -(mean[c] * x_factor[c]) - inverse[c] * a[c];
    }
    kernels<Real>().channel_affine2(dy, dy_factor, x, x_factor, term, at.dx + size(i) * image,
                                    n.pixels, channels);
  }
}

std::size_t scratch_values(const GroupNormOperation& n, int batch) {
  return size(2 * batch + 6) * size(n.channels);
}

template void forward(const GroupNormOperation&, int, const float*, const Operands<float>&);
template void backward(const GroupNormOperation&, int, const float*, float*,
                       const Operands<float>&);
template void forward(const GroupNormOperation&, int, const double*, const Operands<double>&);
template void backward(const GroupNormOperation&, int, const double*, double*,
                       const Operands<double>&);

}  // namespace gossamer::gpu
