// Average-pooling.
#include <algorithm>

#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {
namespace {

/// Calls body(pixel of the input, pixel of the output) for each pixel of each window of a sample,
/// window by window.
template <class Body>
void for_windows(const AveragePoolOperation& p, Body body) {
  std::size_t output = 0;
  for (int h = 0; h + p.window_height <= p.height; h += p.window_height)
    for (int w = 0; w + p.window_width <= p.width; w += p.window_width, ++output)
      for (int i = 0; i < p.window_height; ++i)
        for (int j = 0; j < p.window_width; ++j) body(size((h + i) * p.width + w + j), output);
}

std::size_t input_values(const AveragePoolOperation& p) {
  return size(p.height) * size(p.width) * size(p.channels);
}
std::size_t output_values(const AveragePoolOperation& p) {
  return size(p.height / p.window_height) * size(p.width / p.window_width) * size(p.channels);
}
template <class Real>
Real share(const AveragePoolOperation& p) {
  return Real(1) / static_cast<Real>(p.window_height * p.window_width);
}

}  // namespace

template <class Real>
void forward(const AveragePoolOperation& pool, int batch, const Real*, const Operands<Real>& at) {
  const std::size_t channels = size(pool.channels);
  std::fill_n(at.y, size(batch) * output_values(pool), Real(0));
  for (std::size_t i = 0; i < size(batch); ++i) {
    const Real* x = at.x + i * input_values(pool);
    Real* y = at.y + i * output_values(pool);
    for_windows(pool, [&](std::size_t from, std::size_t to) {
      kernels<Real>().axpy(1, x + from * channels, y + to * channels, channels);
    });
  }
  kernels<Real>().scale(share<Real>(pool), at.y, size(batch) * output_values(pool));
}

template <class Real>
void backward(const AveragePoolOperation& pool, int batch, const Real*, Real*,
              const Operands<Real>& at) {
  if (at.dx == nullptr) return;
  const std::size_t channels = size(pool.channels);
  kernels<Real>().scale(share<Real>(pool), at.dy, size(batch) * output_values(pool));
  std::fill_n(at.dx, size(batch) * input_values(pool), Real(0));
  for (std::size_t i = 0; i < size(batch); ++i) {
    const Real* dy = at.dy + i * output_values(pool);
    Real* dx = at.dx + i * input_values(pool);
    for_windows(pool, [&](std::size_t from, std::size_t to) {
      std::copy_n(dy + to * channels, channels, dx + from * channels);
    });
  }
}

std::size_t scratch_values(const AveragePoolOperation&, int) { return 0; }

template void forward(const AveragePoolOperation&, int, const float*, const Operands<float>&);
template void backward(const AveragePoolOperation&, int, const float*, float*,
                       const Operands<float>&);
template void forward(const AveragePoolOperation&, int, const double*, const Operands<double>&);
template void backward(const AveragePoolOperation&, int, const double*, double*,
                       const Operands<double>&);

}  // namespace gossamer::gpu
