// The start of a training step: samples, labels, targets, rates and step numbers are taken from the
// data set and the call's inputs. And the noise of gradients.
#include "base/philox.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/vector.hpp"
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kMostThreads = 256;

template <class Real>
struct GatherArguments {
  Batch<Real> batch;
  SampleTable table;
  const CallInputs* call;
  StepInputs<Real> inputs;
  int channels, pixels;
  FastDivide by_channels;
  Loss loss;
  bool takes_samples;
  UpdateRule rule;
  bool with_rates;
  bool vectors;  ///< a sample is copied as it is, four values at a time
  ImageViews views;
};

constexpr int kFour = Pack<float>::kValues;

/// Both at 16-byte boundaries.
template <class Real>
__device__ __forceinline__ void copy_four(const float* from, Real* to) {
  constexpr int kValues = Pack<Real>::kValues;
  const Pack<float> in = load_pack(from);
#pragma unroll
  for (int first = 0; first < kFour; first += kValues) {
    Pack<Real> out;
#pragma unroll
    for (int v = 0; v < kValues; ++v) out.v[v] = static_cast<Real>(in.v[first + v]);
    store_pack(to + first, out, false);
  }
}

/// A block per sample: blockIdx.x of peer blockIdx.z.
template <class Real>
__global__ void __launch_bounds__(kMostThreads) gather_kernel(GatherArguments<Real> a) {
  const CallInputs call = *a.call;
  const std::size_t peer = blockIdx.z, i = blockIdx.x;
  const std::size_t steps = static_cast<std::size_t>(call.steps),
                    step = static_cast<std::size_t>(call.step);
  const auto samples = static_cast<std::size_t>(a.batch.samples);
  const std::uint32_t index = call.samples[(peer * steps + step) * samples + i];
  const std::uint32_t sample = a.views.on() ? ImageViews::number(index) : index;
  if (threadIdx.x == 0) {
    if (a.loss == Loss::squared_error)
      a.inputs.targets[peer * samples + i] = a.table.targets[sample];
    else a.inputs.labels[peer * samples + i] = a.table.labels[sample];
    if (i == 0) {
      const std::uint64_t number = call.first_steps[peer] + step;
      a.inputs.steps[peer] = number;
      if (a.with_rates)
        a.inputs.factors[peer] =
            factors_of<Real>(step_factors(a.rule, call.rates[peer * steps + step], number));
    }
  }
  const int size = a.takes_samples ? a.channels * a.pixels : 0;
  const float* from = a.table.features + static_cast<std::size_t>(sample) * size;
  Real* to = a.batch.at(blockIdx.z, i * size);
  if (a.vectors) {
    for (int v = kFour * static_cast<int>(threadIdx.x); v < size;
         v += kFour * static_cast<int>(blockDim.x))
      copy_four(in_global(from) + v, to + v);
    return;
  }
#pragma unroll 4
  for (int v = static_cast<int>(threadIdx.x); v < size; v += static_cast<int>(blockDim.x)) {
    int pixel = v;
    const int channel = a.by_channels.split(pixel);
    if (a.views.on()) pixel = a.views.source(index, pixel);
    to[v] = pixel < 0
                ? Real{0}
                : static_cast<Real>(from[static_cast<std::size_t>(channel) * a.pixels + pixel]);
  }
}

constexpr double kTwoPi = 6.283185307179586476925286766559;

/// Numbers 2k and 2k + 1 of the stream of normals come from block k (RandomStream::next_normal).
template <class Real>
__global__ void __launch_bounds__(kMostThreads)
    noise_kernel(Batch<Real> batch, GradientNoise noise, const std::uint64_t* steps,
                 std::size_t parameters) {
  const std::size_t k = std::size_t{blockIdx.x} * kMostThreads + threadIdx.x;
  if (2 * k >= parameters) return;
  const PeerRows<Real> rows = batch.rows[blockIdx.z];
  const auto bits = RandomKey(noise.seed, rows.peer, Purpose::gradient_noise, steps[blockIdx.z])
                        .block(static_cast<std::uint32_t>(k));
  const double radius = sqrt(-2.0 * log(1.0 - unit_double(bits[0], bits[1])));  // 1−u: never log(0)
  const double angle = kTwoPi * unit_double(bits[2], bits[3]);
  rows.gradient[2 * k] += static_cast<Real>(noise.deviation * (radius * cos(angle)));
  if (2 * k + 1 < parameters)
    rows.gradient[2 * k + 1] += static_cast<Real>(noise.deviation * (radius * sin(angle)));
}

}  // namespace

template <class Real>
void gather(cudaStream_t stream, const Batch<Real>& batch, const Task& task, const CallInputs* call,
            const StepInputs<Real>& inputs, bool with_rates) {
  const Program& program = *task.program;
  const bool vectors = !task.views.on() && program.channels == 1 &&
                       program.features() % kFour == 0 && aligned(task.tables[0].features) &&
                       aligned(batch.workspace) && batch.stride % kFour == 0;
  const GatherArguments<Real> arguments{batch,
                                        task.tables[0],
                                        call,
                                        inputs,
                                        program.channels,
                                        program.pixels,
                                        FastDivide(program.channels),
                                        program.loss,
                                        program.takes_samples,
                                        task.rule,
                                        with_rates,
                                        vectors,
                                        task.views};
  unsigned threads = 32;
  while (threads < kMostThreads && threads * 4 < program.features()) threads *= 2;
  launch(gather_kernel<Real>,
         dim3(static_cast<unsigned>(batch.samples), 1, static_cast<unsigned>(batch.peers)), threads,
         stream, arguments);
}

template <class Real>
void add_noise(cudaStream_t stream, const Batch<Real>& batch, const GradientNoise& noise,
               const StepInputs<Real>& inputs, std::size_t parameters) {
  const std::size_t pairs = (parameters + 1) / 2;
  launch(noise_kernel<Real>,
         dim3(static_cast<unsigned>(pieces_of(pairs, kMostThreads)), 1,
              static_cast<unsigned>(batch.peers)),
         kMostThreads, stream, batch, noise, inputs.steps, parameters);
}

#define GOSSAMER_GATHER(Real)                                                            \
  template void gather(cudaStream_t, const Batch<Real>&, const Task&, const CallInputs*, \
                       const StepInputs<Real>&, bool);                                   \
  template void add_noise(cudaStream_t, const Batch<Real>&, const GradientNoise&,        \
                          const StepInputs<Real>&, std::size_t);
GOSSAMER_GATHER(float)
GOSSAMER_GATHER(double)

}  // namespace gossamer::gpu::cuda
