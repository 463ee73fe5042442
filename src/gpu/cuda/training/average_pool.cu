// Average-pooling: forward a thread per output, backward a thread per input.
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kAverageThreads = 256;

template <class Real>
struct AverageArguments {
  Batch<Real> batch;
  AveragePoolOperation pool;
  std::size_t input, output, input_gradient, output_gradient;
  int height, width;    ///< of the output
  int inputs, outputs;  ///< of all samples of a peer

  __device__ __forceinline__ Real share() const {
    return Real(1) / static_cast<Real>(pool.window_height * pool.window_width);
  }
};

/// The sum of a window in the order of its pixels, times 1 / their number.
template <class Real>
__global__ void __launch_bounds__(kAverageThreads) average_kernel(AverageArguments<Real> a) {
  const int i = static_cast<int>(blockIdx.x * kAverageThreads + threadIdx.x);
  if (i >= a.outputs) return;
  const AveragePoolOperation& p = a.pool;
  const int channel = i % p.channels, pixel = i / p.channels;
  const int column = pixel % a.width, row = pixel / a.width % a.height,
            sample = pixel / a.width / a.height;
  const Real* x = a.batch.at(blockIdx.z, a.input) + channel;
  Real sum = 0;
  for (int h = row * p.window_height; h < (row + 1) * p.window_height; ++h)
    for (int w = column * p.window_width; w < (column + 1) * p.window_width; ++w)
      sum += x[((static_cast<std::size_t>(sample) * p.height + h) * p.width + w) * p.channels];
  a.batch.at(blockIdx.z, a.output)[i] = a.share() * sum;
}

template <class Real>
__global__ void __launch_bounds__(kAverageThreads) spread_kernel(AverageArguments<Real> a) {
  const int i = static_cast<int>(blockIdx.x * kAverageThreads + threadIdx.x);
  if (i >= a.inputs) return;
  const AveragePoolOperation& p = a.pool;
  const int channel = i % p.channels, pixel = i / p.channels;
  const int column = pixel % p.width / p.window_width,
            row = pixel / p.width % p.height / p.window_height, sample = pixel / p.width / p.height;
  Real value = 0;
  if (row < a.height && column < a.width)
    value =
        a.share() *
        a.batch.at(blockIdx.z, a.output_gradient)
            [((static_cast<std::size_t>(sample) * a.height + row) * a.width + column) * p.channels +
             channel];
  a.batch.at(blockIdx.z, a.input_gradient)[i] = value;
}

template <class Real>
AverageArguments<Real> arguments_of(const LayerCall<Real>& call, const AveragePoolOperation& pool) {
  const int height = pool.height / pool.window_height, width = pool.width / pool.window_width;
  return {.batch = call.batch,
          .pool = pool,
          .input = call.layer.input(),
          .output = call.layer.output,
          .input_gradient = call.layer.input_gradient(),
          .output_gradient = call.layer.output_gradient(),
          .height = height,
          .width = width,
          .inputs = call.batch.samples * pool.height * pool.width * pool.channels,
          .outputs = call.batch.samples * height * width * pool.channels};
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const AveragePoolOperation& pool) {
  const AverageArguments<Real> arguments = arguments_of(call, pool);
  launch(average_kernel<Real>,
         value_grid(static_cast<std::size_t>(arguments.outputs), call.batch.peers, kAverageThreads),
         kAverageThreads, call.stream(), arguments);
}

template <class Real>
void backward(const LayerCall<Real>& call, const AveragePoolOperation& pool) {
  if (call.layer.input_gradient() == kNowhere) return;
  const AverageArguments<Real> arguments = arguments_of(call, pool);
  launch(spread_kernel<Real>,
         value_grid(static_cast<std::size_t>(arguments.inputs), call.batch.peers, kAverageThreads),
         kAverageThreads, call.stream(), arguments);
}

std::size_t extra_values(const AveragePoolOperation&, int, int) { return 0; }

template void forward(const LayerCall<float>&, const AveragePoolOperation&);
template void forward(const LayerCall<double>&, const AveragePoolOperation&);
template void backward(const LayerCall<float>&, const AveragePoolOperation&);
template void backward(const LayerCall<double>&, const AveragePoolOperation&);

}  // namespace gossamer::gpu::cuda
