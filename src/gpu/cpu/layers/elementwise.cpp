// Activations and biases, sums of tensors, and channels beside each other.
#include <algorithm>

#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {

template <class Real>
void forward(const ElementwiseOperation& e, int batch, const Real* row, const Operands<Real>& at) {
  const std::size_t values = size(e.values);
  if (e.activation == Activation::gelu) {
    kernels<Real>().gelu(at.x, at.y, size(batch) * values);
    return;
  }
  std::copy_n(at.x, size(batch) * values, at.y);
  if (e.bias != kNowhere)
    for (std::size_t i = 0; i < size(batch); ++i)
      kernels<Real>().axpy(1, row + e.bias, at.y + i * values, values);
  kernels<Real>().activate(e.activation, at.y, size(batch) * values);
}

template <class Real>
void backward(const ElementwiseOperation& e, int batch, const Real*, Real* gradient,
              const Operands<Real>& at) {
  const std::size_t values = size(batch) * size(e.values);
  if (e.activation == Activation::gelu) {
    if (at.dx != nullptr) kernels<Real>().gelu_backward(at.x, at.dy, at.dx, values);
    return;
  }
  kernels<Real>().activation_backward(e.activation, at.y, at.dy, values);
  if (e.bias != kNowhere) {
    at.start(gradient + e.bias, size(e.values));
    kernels<Real>().column_sums(at.dy, batch, e.values, gradient + e.bias);
  }
  if (at.dx != nullptr) std::copy_n(at.dy, values, at.dx);
}

template <class Real>
void forward(const SumOperation& sum, int batch, const Real*, const Operands<Real>& at) {
  const std::size_t values = size(batch) * size(sum.values);
  std::copy_n(at.x, values, at.y);
  for (std::size_t k = 1; k < at.inputs(); ++k) kernels<Real>().axpy(1, at.input(k), at.y, values);
  kernels<Real>().activate(sum.activation, at.y, values);
}

template <class Real>
void backward(const SumOperation& sum, int batch, const Real*, Real*, const Operands<Real>& at) {
  const std::size_t values = size(batch) * size(sum.values);
  kernels<Real>().activation_backward(sum.activation, at.y, at.dy, values);
  for (std::size_t k = 0; k < at.inputs(); ++k)
    if (Real* dx = at.input_gradient(k); dx != nullptr) std::copy_n(at.dy, values, dx);
}

template <class Real>
void forward(const ConcatenateOperation& c, int batch, const Real*, const Operands<Real>& at) {
  Real* to = at.y;
  for (std::size_t pixel = 0; pixel < size(batch) * size(c.pixels); ++pixel)
    for (std::size_t k = 0; k < at.inputs(); ++k) {
      const std::size_t channels = size(c.channels[k]);
      to = std::copy_n(at.input(k) + pixel * channels, channels, to);
    }
}

template <class Real>
void backward(const ConcatenateOperation& c, int batch, const Real*, Real*,
              const Operands<Real>& at) {
  const Real* from = at.dy;
  for (std::size_t pixel = 0; pixel < size(batch) * size(c.pixels); ++pixel)
    for (std::size_t k = 0; k < at.inputs(); ++k) {
      const std::size_t channels = size(c.channels[k]);
      if (Real* dx = at.input_gradient(k); dx != nullptr)
        std::copy_n(from, channels, dx + pixel * channels);
      from += channels;
    }
}

std::size_t scratch_values(const ElementwiseOperation&, int) { return 0; }
std::size_t scratch_values(const SumOperation&, int) { return 0; }
std::size_t scratch_values(const ConcatenateOperation&, int) { return 0; }

#define GOSSAMER_LAYER(Operation, Real)                                             \
  template void forward(const Operation&, int, const Real*, const Operands<Real>&); \
  template void backward(const Operation&, int, const Real*, Real*, const Operands<Real>&);
GOSSAMER_LAYER(ElementwiseOperation, float)
GOSSAMER_LAYER(ElementwiseOperation, double)
GOSSAMER_LAYER(SumOperation, float)
GOSSAMER_LAYER(SumOperation, double)
GOSSAMER_LAYER(ConcatenateOperation, float)
GOSSAMER_LAYER(ConcatenateOperation, double)
#undef GOSSAMER_LAYER

}  // namespace gossamer::gpu
