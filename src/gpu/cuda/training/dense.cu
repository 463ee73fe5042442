// Dense layers: Y = f(X W + b); with dY ← dY ⊙ f′: db = Σ_rows dY, dW = Xᵀ dY, dX = dY Wᵀ. cuBLAS
// sees the transposes: Yᵀ = Wᵀ Xᵀ, dWᵀ = dYᵀ X, dXᵀ = W dYᵀ.
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// A matrix of the workspace, `stride` values a row.
template <class Real>
Operand<Real> activation(const LayerCall<Real>& call, std::size_t offset, Real* const* pointers,
                         int stride) {
  return {call.batch.at(0, offset), static_cast<std::ptrdiff_t>(call.batch.stride), pointers,
          stride, false};
}
template <class Real>
Operand<Real> weights(const LayerCall<Real>& call, const DenseOperation& dense) {
  return {call.even.parameters + dense.weights, call.even.parameters_distance,
          call.pointers.weights, dense.outputs, false};
}
template <class Real>
Operand<Real> weights_gradient(const LayerCall<Real>& call, const DenseOperation& dense) {
  return {call.even.gradient + dense.weights, call.even.gradient_distance, call.pointers.gradient,
          dense.outputs, false};
}
template <class Real>
Operand<Real> transposed(Operand<Real> operand) {
  operand.transposed = true;
  return operand;
}

Columns columns(const LayerOperation& layer, const DenseOperation& dense, int samples,
                std::size_t extra) {
  return {samples,    dense.outputs, dense.activation, layer.output, layer.output_gradient,
          dense.bias, extra};
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const DenseOperation& dense) {
  const int in = dense.inputs, out = dense.outputs, samples = call.batch.samples;
  call.context.products().template run<Real>(
      {.m = out,
       .n = samples,
       .k = in,
       .a = weights(call, dense),
       .b = activation(call, call.layer.input, call.pointers.input, in),
       .c = activation(call, call.layer.output, call.pointers.output, out),
       .peers = call.batch.peers});
  if (!call.bias_follows)
    add_bias_and_activate(call.stream(), call.batch,
                          columns(call.layer, dense, samples, call.extra));
}

template <class Real>
void backward(const LayerCall<Real>& call, const DenseOperation& dense) {
  const int in = dense.inputs, out = dense.outputs, samples = call.batch.samples;
  activation_and_bias_backward(call.stream(), call.batch,
                               columns(call.layer, dense, samples, call.extra));
  const auto dy = activation(call, call.layer.output_gradient, call.pointers.output_gradient, out);
  call.context.products().template run<Real>(
      {.m = out,
       .n = in,
       .k = samples,
       .a = dy,
       .b = transposed(activation(call, call.layer.input, call.pointers.input, in)),
       .c = weights_gradient(call, dense),
       .peers = call.batch.peers});
  if (call.layer.input_gradient == kNowhere) return;
  call.context.products().template run<Real>(
      {.m = in,
       .n = samples,
       .k = out,
       .a = transposed(weights(call, dense)),
       .b = dy,
       .c = activation(call, call.layer.input_gradient, call.pointers.input_gradient, in),
       .peers = call.batch.peers});
}

std::size_t extra_values(const DenseOperation& dense, int peers, int samples) {
  return dense.bias == kNowhere ? 0 : column_extra(peers, samples, dense.outputs);
}

template void forward(const LayerCall<float>&, const DenseOperation&);
template void forward(const LayerCall<double>&, const DenseOperation&);
template void backward(const LayerCall<float>&, const DenseOperation&);
template void backward(const LayerCall<double>&, const DenseOperation&);

}  // namespace gossamer::gpu::cuda
