// Max-pooling: a thread per output.
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kMaxThreads = 256;

template <class Real>
struct PoolArguments {
  Batch<Real> batch;
  MaxPoolOperation pool;
  std::size_t input, output, input_gradient, output_gradient;
  FastDivide by_channels, by_width, by_height;
  int outputs;  ///< of all samples of a peer
};

/// Where the window of output `i` begins in the inputs.
template <class Real>
__device__ __forceinline__ std::size_t corner(const PoolArguments<Real>& a, int i) {
  const int channel = a.by_channels.split(i), column = a.by_width.split(i),
            row = a.by_height.split(i);
  const int size = a.pool.size;
  return ((static_cast<std::size_t>(i) * a.pool.height + row * size) * a.pool.width +
          column * size) *
             a.pool.channels +
         channel;
}

/// A NaN in a window is its maximum.
template <class Real>
__global__ void __launch_bounds__(kMaxThreads) max_kernel(PoolArguments<Real> a) {
  const int i = static_cast<int>(blockIdx.x * kMaxThreads + threadIdx.x);
  if (i >= a.outputs) return;
  const Real* x = a.batch.at(blockIdx.z, a.input) + corner(a, i);
  Real best = *x;
  for (int row = 0; row < a.pool.size; ++row)
    for (int column = 0; column < a.pool.size; ++column) {
      const Real here =
          x[(static_cast<std::size_t>(row) * a.pool.width + column) * a.pool.channels];
      best = here > best || here != here ? here : best;
    }
  a.batch.at(blockIdx.z, a.output)[i] = best;
}

/// dx is dy where the window's first maximum was, 0 elsewhere.
template <class Real>
__global__ void __launch_bounds__(kMaxThreads) max_gradients_kernel(PoolArguments<Real> a) {
  const int i = static_cast<int>(blockIdx.x * kMaxThreads + threadIdx.x);
  if (i >= a.outputs) return;
  const std::size_t first = corner(a, i);
  const Real* x = a.batch.at(blockIdx.z, a.input) + first;
  Real* dx = a.batch.at(blockIdx.z, a.input_gradient) + first;
  const Real best = a.batch.at(blockIdx.z, a.output)[i];
  Real left = a.batch.at(blockIdx.z, a.output_gradient)[i];
  for (int row = 0; row < a.pool.size; ++row)
    for (int column = 0; column < a.pool.size; ++column) {
      const std::size_t at =
          (static_cast<std::size_t>(row) * a.pool.width + column) * a.pool.channels;
      const bool here = x[at] == best;
      dx[at] = here ? left : Real(0);
      left = here ? Real(0) : left;
    }
}

template <class Real>
__global__ void __launch_bounds__(kMaxThreads)
    max_clear_kernel(Batch<Real> batch, std::size_t offset, std::size_t values) {
  Real* to = batch.at(blockIdx.z, offset);
  for (std::size_t i = std::size_t{blockIdx.x} * kMaxThreads + threadIdx.x; i < values;
       i += std::size_t{gridDim.x} * kMaxThreads)
    to[i] = 0;
}

template <class Real>
PoolArguments<Real> arguments_of(const LayerCall<Real>& call, const MaxPoolOperation& pool) {
  const int height = pool.height / pool.size, width = pool.width / pool.size;
  return {call.batch,
          pool,
          call.layer.input(),
          call.layer.output,
          call.layer.input_gradient(),
          call.layer.output_gradient(),
          FastDivide(pool.channels),
          FastDivide(width),
          FastDivide(height),
          call.batch.samples * height * width * pool.channels};
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const MaxPoolOperation& pool) {
  const PoolArguments<Real> arguments = arguments_of(call, pool);
  launch(max_kernel<Real>,
         value_grid(static_cast<std::size_t>(arguments.outputs), call.batch.peers, kMaxThreads),
         kMaxThreads, call.stream(), arguments);
}

template <class Real>
void backward(const LayerCall<Real>& call, const MaxPoolOperation& pool) {
  if (call.layer.input_gradient() == kNowhere) return;
  const PoolArguments<Real> arguments = arguments_of(call, pool);
  if (pool.height % pool.size != 0 || pool.width % pool.size != 0) {
    const std::size_t values =
        static_cast<std::size_t>(call.batch.samples) * static_cast<std::size_t>(pool.height) *
        static_cast<std::size_t>(pool.width) * static_cast<std::size_t>(pool.channels);
    launch(max_clear_kernel<Real>, value_grid(values, call.batch.peers, kMaxThreads), kMaxThreads,
           call.stream(), call.batch, call.layer.input_gradient(), values);
  }
  launch(max_gradients_kernel<Real>,
         value_grid(static_cast<std::size_t>(arguments.outputs), call.batch.peers, kMaxThreads),
         kMaxThreads, call.stream(), arguments);
}

std::size_t extra_values(const MaxPoolOperation&, int, int) { return 0; }

template void forward(const LayerCall<float>&, const MaxPoolOperation&);
template void forward(const LayerCall<double>&, const MaxPoolOperation&);
template void backward(const LayerCall<float>&, const MaxPoolOperation&);
template void backward(const LayerCall<double>&, const MaxPoolOperation&);

}  // namespace gossamer::gpu::cuda
