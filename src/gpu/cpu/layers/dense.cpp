// Dense layers.
//
// Dense: Y = f(X W + b); with dY ← dY ⊙ f′: db = Σ_rows dY, dW = Xᵀ dY, dX = dY Wᵀ.
#include <algorithm>

#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {

template <class Real>
void forward(const DenseOperation& dense, int batch, const Real* row, const Operands<Real>& at) {
  const int in = dense.inputs, out = dense.outputs;
  const Real* bias = dense.bias == kNowhere ? nullptr : row + dense.bias;
  kernels<Real>().product({.m = batch,
                           .n = out,
                           .k = in,
                           .a = at.x,
                           .a_row = in,
                           .b = row + dense.weights,
                           .b_row = out,
                           .scratch = at.scratch,
                           .c = at.y,
                           .c_row = out,
                           .bias = bias});
  kernels<Real>().activate(dense.activation, at.y, size(batch) * size(out));
}

template <class Real>
void backward(const DenseOperation& dense, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at) {
  const int in = dense.inputs, out = dense.outputs;
  if (at.wanted.is_first)
    kernels<Real>().activation_backward(dense.activation, at.y, at.dy, size(batch) * size(out));
  if (at.wanted.parameters && dense.bias != kNowhere) {
    at.start(gradient + dense.bias, size(out));
    kernels<Real>().column_sums(at.dy, batch, out, gradient + dense.bias);
  }
  if (at.wanted.parameters)
    kernels<Real>().product({.m = in,
                             .n = out,
                             .k = batch,
                             .a = at.x,
                             .a_row = 1,
                             .a_column = in,
                             .b = at.dy,
                             .b_row = out,
                             .scratch = at.scratch,
                             .c = gradient + dense.weights,
                             .c_row = out,
                             .accumulate = at.accumulate});
  if (at.dx == nullptr || !at.wanted.input) return;
  kernels<Real>().product({.m = batch,
                           .n = in,
                           .k = out,
                           .a = at.dy,
                           .a_row = out,
                           .b = row + dense.weights,
                           .b_row = out,
                           .b_transposed = true,
                           .scratch = at.scratch,
                           .c = at.dx,
                           .c_row = in,
                           .accumulate = at.goes_on});
}

std::size_t scratch_values(const DenseOperation& dense, int batch) {
  return packed_values(std::max({dense.inputs, dense.outputs, batch}));
}

template void forward(const DenseOperation&, int, const float*, const Operands<float>&);
template void backward(const DenseOperation&, int, const float*, float*, const Operands<float>&);
template void forward(const DenseOperation&, int, const double*, const Operands<double>&);
template void backward(const DenseOperation&, int, const double*, double*, const Operands<double>&);

}  // namespace gossamer::gpu
