// Group norm (Wu and He 2018): x̂ = (x − μ) / sqrt(σ² + ε), y = activation(scale x̂ + shift).
//
// Scratch of the layer, kept from forward to backward: [samples, groups] pairs μ, 1/σ. Extra
// values, backward only: per sample and channel A = Σ_pixels dy and B = Σ_pixels dy x̂; per sample
// and group S₁ = Σ scale A / N and S₂ = Σ scale B / N over the group's channels, N its values. Then
//   dshift = Σ_samples A,  dscale = Σ_samples B,  dx = (scale dy − S₁ − x̂ S₂) / σ.
#include <algorithm>
#include <bit>

#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/vector.hpp"
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kNormThreads = 256;

template <class Real>
struct NormArguments {
  Batch<Real> batch;
  GroupNormOperation norm;
  std::size_t input, output, input_gradient, output_gradient, statistics, channel_sums,
      group_sums;                   // in the workspace
  FastDivide by_channels, by_each;  // each: channels of a group
  int tile;                         // columns of a block's channel sums

  __device__ __forceinline__ int image() const { return norm.pixels * norm.channels; }
  __device__ __forceinline__ int each() const { return norm.channels / norm.groups; }
};

/// A block per sample (x) and group (y).
template <class Real>
__global__ void __launch_bounds__(kNormThreads) group_norm_kernel(NormArguments<Real> a) {
  GOSSAMER_SHARED(double, shared, [kNormThreads]);
  const int each = a.each(), channels = a.norm.channels, values = a.norm.pixels * each;
  const int first_channel = static_cast<int>(blockIdx.y) * each;
  const std::size_t image = static_cast<std::size_t>(blockIdx.x) * a.image() + first_channel;
  const Real* x = a.batch.at(blockIdx.z, a.input + image);
  Real* y = a.batch.at(blockIdx.z, a.output + image);
  const auto for_values = [&](auto body) {
#pragma unroll 4
    for (int v = static_cast<int>(threadIdx.x); v < values; v += kNormThreads) {
      int pixel = v;
      const int c = a.by_each.split(pixel);
      body(static_cast<std::size_t>(pixel) * channels + c, c);
    }
  };
  double sum = 0;
  for_values([&](std::size_t at, int) { sum += static_cast<double>(x[at]); });
  const double mean = block_sum<kNormThreads>(sum, shared) / values;
  double squares = 0;
  for_values([&](std::size_t at, int) {
    const double difference = static_cast<double>(x[at]) - mean;
    squares += difference * difference;
  });
  const double variance = block_sum<kNormThreads>(squares, shared) / values;
  const Real centre = static_cast<Real>(mean);
  const Real inverse = static_cast<Real>(1 / sqrt(variance + GroupNormOperation::kEpsilon));
  const Real* row = a.batch.parameters(blockIdx.z);
  const Real *scale = row + a.norm.scale + first_channel,
             *shift = row + a.norm.shift + first_channel;
  for_values([&](std::size_t at, int c) {
    y[at] = activated(a.norm.activation, scale[c] * ((x[at] - centre) * inverse) + shift[c]);
  });
  if (threadIdx.x != 0) return;
  Real* statistics = a.batch.at(blockIdx.z, a.statistics) +
                     2 * (std::size_t{blockIdx.x} * a.norm.groups + blockIdx.y);
  statistics[0] = centre;
  statistics[1] = inverse;
}

/// dy ← dy ⊙ f′(y); A and B. A block per sample (x) and tile of channels (y): `tile` channels ×
/// kNormThreads / tile lanes of pixels.
template <class Real>
__global__ void __launch_bounds__(kNormThreads) norm_channel_kernel(NormArguments<Real> a) {
  GOSSAMER_SHARED(Real, shared_a, [kNormThreads]);
  GOSSAMER_SHARED(Real, shared_b, [kNormThreads]);
  const int thread = static_cast<int>(threadIdx.x), tile = a.tile, lanes = kNormThreads / tile,
            channels = a.norm.channels;
  const int channel = static_cast<int>(blockIdx.y) * tile + thread % tile;
  Real sum_a = 0, sum_b = 0;
  if (channel < channels) {
    const std::size_t image = static_cast<std::size_t>(blockIdx.x) * a.image() + channel;
    const Real* x = a.batch.at(blockIdx.z, a.input + image);
    const Real* y = a.batch.at(blockIdx.z, a.output + image);
    Real* dy = a.batch.at(blockIdx.z, a.output_gradient + image);
    const int group = a.by_each.quotient(channel);
    const Real* statistics = a.batch.at(blockIdx.z, a.statistics) +
                             2 * (std::size_t{blockIdx.x} * a.norm.groups + group);
    const Real centre = statistics[0], inverse = statistics[1];
#pragma unroll 4
    for (int pixel = thread / tile; pixel < a.norm.pixels; pixel += lanes) {
      const std::size_t at = static_cast<std::size_t>(pixel) * channels;
      Real d = dy[at];
      if (a.norm.activation != Activation::none) {
        d = activation_gradient(a.norm.activation, y[at], d);
        dy[at] = d;
      }
      sum_a += d;
      sum_b += d * ((x[at] - centre) * inverse);
    }
  }
  shared_a[thread] = sum_a;
  shared_b[thread] = sum_b;
  __syncthreads();
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (thread < half * tile) {
      shared_a[thread] += shared_a[thread + half * tile];
      shared_b[thread] += shared_b[thread + half * tile];
    }
    __syncthreads();
  }
  if (thread >= tile || channel >= channels) return;
  Real* sums = a.batch.at(blockIdx.z, a.channel_sums) +
               2 * (static_cast<std::size_t>(blockIdx.x) * channels + channel);
  sums[0] = shared_a[thread];
  sums[1] = shared_b[thread];
}

/// Blocks below `channels`: dshift and dscale of a channel; a thread of the others: S₁ and S₂ of a
/// sample and group.
template <class Real>
__global__ void __launch_bounds__(kNormThreads) norm_sums_kernel(NormArguments<Real> a) {
  GOSSAMER_SHARED(double, shared, [kNormThreads]);
  const int channels = a.norm.channels, groups = a.norm.groups, each = a.each();
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const PeerRows<Real> rows = a.batch.rows[blockIdx.z];
  const Real* sums = a.batch.at(blockIdx.z, a.channel_sums);
  if (block < channels) {
    double shift = 0, scale = 0;
    for (int i = thread; i < a.batch.samples; i += kNormThreads) {
      const Real* of_sample = sums + 2 * (static_cast<std::size_t>(i) * channels + block);
      shift += static_cast<double>(of_sample[0]);
      scale += static_cast<double>(of_sample[1]);
    }
    shift = block_sum<kNormThreads>(shift, shared);
    scale = block_sum<kNormThreads>(scale, shared);
    if (thread != 0) return;
    rows.gradient[a.norm.shift + block] = static_cast<Real>(shift);
    rows.gradient[a.norm.scale + block] = static_cast<Real>(scale);
    return;
  }
  Real first = 0, second = 0;
  const int place = (block - channels) * kNormThreads + thread;  // sample · groups + group
  if (place >= a.batch.samples * groups) return;
  const int sample = place / groups, group = place % groups;
  const Real share = Real(1) / static_cast<Real>(a.norm.pixels * each);
  for (int c = group * each; c < (group + 1) * each; ++c) {
    const Real scale = rows.parameters[a.norm.scale + c];
    first += scale * sums[2 * (static_cast<std::size_t>(sample) * channels + c)];
    second += scale * sums[2 * (static_cast<std::size_t>(sample) * channels + c) + 1];
  }
  Real* to = a.batch.at(blockIdx.z, a.group_sums) + 2 * static_cast<std::size_t>(place);
  to[0] = first * share;
  to[1] = second * share;
}

/// dx. A block per sample (x) and piece of its image (y).
template <class Real>
__global__ void __launch_bounds__(kNormThreads) norm_gradients_kernel(NormArguments<Real> a) {
  const int image = a.image(), groups = a.norm.groups;
  const std::size_t begin = static_cast<std::size_t>(blockIdx.x) * image;
  const Real* x = a.batch.at(blockIdx.z, a.input + begin);
  const Real* dy = a.batch.at(blockIdx.z, a.output_gradient + begin);
  Real* dx = a.batch.at(blockIdx.z, a.input_gradient + begin);
  const Real* statistics =
      a.batch.at(blockIdx.z, a.statistics) + 2 * std::size_t{blockIdx.x} * groups;
  const Real* totals = a.batch.at(blockIdx.z, a.group_sums) + 2 * std::size_t{blockIdx.x} * groups;
  const Real* scale = a.batch.parameters(blockIdx.z) + a.norm.scale;
  const int step = static_cast<int>(gridDim.y) * kNormThreads;
#pragma unroll 4
  for (int v = static_cast<int>(blockIdx.y * kNormThreads + threadIdx.x); v < image; v += step) {
    int pixel = v;
    const int channel = a.by_channels.split(pixel), group = a.by_each.quotient(channel);
    const Real centre = statistics[2 * group], inverse = statistics[2 * group + 1];
    const Real normal = (x[v] - centre) * inverse;
    dx[v] = inverse * (scale[channel] * dy[v] - totals[2 * group] - normal * totals[2 * group + 1]);
  }
}

std::size_t channel_sum_values(const GroupNormOperation& norm, int samples) {
  return 2 * static_cast<std::size_t>(samples) * static_cast<std::size_t>(norm.channels);
}

template <class Real>
NormArguments<Real> arguments_of(const LayerCall<Real>& call, const GroupNormOperation& norm) {
  const auto tile =
      static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min(norm.channels, 32))));
  return {call.batch,
          norm,
          call.layer.input(),
          call.layer.output,
          call.layer.input_gradient(),
          call.layer.output_gradient(),
          call.layer.scratch,
          call.extra,
          call.extra + channel_sum_values(norm, call.batch.samples),
          FastDivide(norm.channels),
          FastDivide(norm.channels / norm.groups),
          tile};
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const GroupNormOperation& norm) {
  launch(group_norm_kernel<Real>,
         dim3(static_cast<unsigned>(call.batch.samples), static_cast<unsigned>(norm.groups),
              static_cast<unsigned>(call.batch.peers)),
         kNormThreads, call.stream(), arguments_of(call, norm));
}

template <class Real>
void backward(const LayerCall<Real>& call, const GroupNormOperation& norm) {
  const NormArguments<Real> arguments = arguments_of(call, norm);
  const auto samples = static_cast<unsigned>(call.batch.samples),
             peers = static_cast<unsigned>(call.batch.peers);
  const auto channels = static_cast<std::size_t>(norm.channels),
             groups = static_cast<std::size_t>(norm.groups);
  const auto tiles =
      static_cast<unsigned>(pieces_of(channels, static_cast<std::size_t>(arguments.tile)));
  launch(norm_channel_kernel<Real>, dim3(samples, tiles, peers), kNormThreads, call.stream(),
         arguments);
  const auto sums = static_cast<unsigned>(channels + pieces_of(samples * groups, kNormThreads));
  launch(norm_sums_kernel<Real>, dim3(sums, 1, peers), kNormThreads, call.stream(), arguments);
  if (call.layer.input_gradient() == kNowhere) return;
  const auto pieces = static_cast<unsigned>(
      pieces_of(channels * static_cast<std::size_t>(norm.pixels), kNormThreads * 4));
  launch(norm_gradients_kernel<Real>, dim3(samples, std::min(pieces, 1024U), peers), kNormThreads,
         call.stream(), arguments);
}

std::size_t extra_values(const GroupNormOperation& norm, int, int samples) {
  return channel_sum_values(norm, samples) +
         2 * static_cast<std::size_t>(samples) * static_cast<std::size_t>(norm.groups);
}

template void forward(const LayerCall<float>&, const GroupNormOperation&);
template void forward(const LayerCall<double>&, const GroupNormOperation&);
template void backward(const LayerCall<float>&, const GroupNormOperation&);
template void backward(const LayerCall<double>&, const GroupNormOperation&);

}  // namespace gossamer::gpu::cuda
