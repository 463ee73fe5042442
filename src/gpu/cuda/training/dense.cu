// Dense layers: Y = f(X W + b); with dY ← dY ⊙ f′: db = Σ_rows dY, dW = Xᵀ dY, dX = dY Wᵀ. cuBLAS
// sees the transposes: Yᵀ = Wᵀ Xᵀ, dWᵀ = dYᵀ X, dXᵀ = W dYᵀ.
#include "gpu/cuda/training/layers.hpp"
#include "gpu/cuda/training/tiled_product.hpp"

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
  return {samples,    dense.outputs, dense.activation, layer.output, layer.output_gradient(),
          dense.bias, extra};
}

/// Y of one peer, with bias and activation.
template <class Real>
struct ForwardProduct {
  static constexpr bool kAlongK = true;
  using Row = int;
  int m, n, k;
  Batch<Real> batch;
  std::size_t input, output, weights, bias;  ///< bias: kNowhere if there is none to add
  Activation activation;
  const Real *x = nullptr, *w = nullptr, *b_row = nullptr;
  Real* y = nullptr;

  __device__ void bind(unsigned peer) {
    x = batch.at(peer, input);
    w = batch.parameters(peer) + weights;
    b_row = bias == kNowhere ? nullptr : batch.parameters(peer) + bias;
    y = batch.at(peer, output);
  }
  __device__ __forceinline__ Row row(int index) const { return index < m ? index : -1; }
  __device__ __forceinline__ int step(int index) const { return index; }
  __device__ __forceinline__ Real a(Row row, int l) const {
    return row >= 0 ? x[static_cast<std::size_t>(row) * k + l] : Real(0);
  }
  __device__ __forceinline__ Real b(int l, int j) const {
    return w[static_cast<std::size_t>(l) * n + j];
  }
  __device__ __forceinline__ void store(int, int i, int j, Real value) const {
    if (b_row != nullptr) value += b_row[j];
    y[static_cast<std::size_t>(i) * n + j] = activated(activation, value);
  }
};

/// Whether a peer has so few outputs that cuBLAS's batched product, which gives a block a tile of
/// them and few threads, leaves most of a large GPU idle. How many peers are trained together does
/// not matter: their results are not to depend on that.
bool few_outputs(int samples, int outputs) {
  constexpr std::size_t kTile = 32, kFewTiles = 8;
  return pieces_of(static_cast<std::size_t>(samples), kTile) *
             pieces_of(static_cast<std::size_t>(outputs), kTile) <=
         kFewTiles;
}

template <class Real>
void forward_in_tiles(const LayerCall<Real>& call, const DenseOperation& dense) {
  const ForwardProduct<Real> problem{.m = call.batch.samples,
                                     .n = dense.outputs,
                                     .k = dense.inputs,
                                     .batch = call.batch,
                                     .input = call.layer.input(),
                                     .output = call.layer.output,
                                     .weights = dense.weights,
                                     .bias = call.bias_follows ? kNowhere : dense.bias,
                                     .activation = dense.activation};
  if (dense.outputs <= 16)
    launch_tiled<Tiles<Real, 32, 16, 32, 4>>(call.stream(), problem, call.batch.peers, 1);
  else launch_tiled<Tiles<Real, 32, 32, 32, 4>>(call.stream(), problem, call.batch.peers, 1);
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const DenseOperation& dense) {
  const int in = dense.inputs, out = dense.outputs, samples = call.batch.samples;
  if (few_outputs(samples, out)) {
    forward_in_tiles(call, dense);
    return;
  }
  call.context.products().template run<Real>(
      {.m = out,
       .n = samples,
       .k = in,
       .a = weights(call, dense),
       .b = activation(call, call.layer.input(), call.pointers.input, in),
       .c = activation(call, call.layer.output, call.pointers.output, out),
       .peers = call.batch.peers,
       .aligned = call.pointers.aligned});
  if (!call.bias_follows)
    add_bias_and_activate(call.stream(), call.batch,
                          columns(call.layer, dense, samples, call.extra));
}

template <class Real>
void backward(const LayerCall<Real>& call, const DenseOperation& dense) {
  const int in = dense.inputs, out = dense.outputs, samples = call.batch.samples;
  activation_and_bias_backward(call.stream(), call.batch,
                               columns(call.layer, dense, samples, call.extra));
  const auto dy =
      activation(call, call.layer.output_gradient(), call.pointers.output_gradient, out);
  call.context.products().template run<Real>(
      {.m = out,
       .n = in,
       .k = samples,
       .a = dy,
       .b = transposed(activation(call, call.layer.input(), call.pointers.input, in)),
       .c = weights_gradient(call, dense),
       .peers = call.batch.peers,
       .aligned = call.pointers.aligned});
  if (call.layer.input_gradient() == kNowhere) return;
  call.context.products().template run<Real>(
      {.m = in,
       .n = samples,
       .k = out,
       .a = transposed(weights(call, dense)),
       .b = dy,
       .c = activation(call, call.layer.input_gradient(), call.pointers.input_gradient, in),
       .peers = call.batch.peers,
       .aligned = call.pointers.aligned});
}

std::size_t extra_values(const DenseOperation& dense, int peers, int samples) {
  return dense.bias == kNowhere ? 0 : column_extra(peers, samples, dense.outputs);
}

template void forward(const LayerCall<float>&, const DenseOperation&);
template void forward(const LayerCall<double>&, const DenseOperation&);
template void backward(const LayerCall<float>&, const DenseOperation&);
template void backward(const LayerCall<double>&, const DenseOperation&);

}  // namespace gossamer::gpu::cuda
