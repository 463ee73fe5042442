// Attention: P = softmax(Q Kᵀ / √f), Y = P V; with dY: dP = dY Vᵀ, dS = P ⊙ (dP − (the sum of P ⊙
// dP over a row)) / √f, dQ = dS K, dK = dSᵀ Q, dV = Pᵀ dY. A thread per position of a sample and
// head: of the queries forward and for dS and dQ, then of the keys for dK and dV.
//
// Scratch of the layer: P of each sample and head. Extra values, backward only: dS of each.
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kAttentionThreads = 128;

template <class Real>
struct AttentionArguments {
  Batch<Real> batch;
  AttentionOperation attention;
  std::size_t input, output, input_gradient, output_gradient, probabilities, score_gradients;
  int queries;  ///< of all samples and heads of a peer
};

/// The addresses of one head of one sample, for a thread.
template <class Real>
struct HeadOf {
  int position;  ///< of the thread
  int stride;    ///< from a position's query to the next one's
  std::size_t first, matrix, output;

  __device__ __forceinline__ HeadOf(const AttentionOperation& a, int thread)
      : position(thread % a.positions), stride(3 * a.width()) {
    const int head = thread / a.positions % a.heads, sample = thread / a.positions / a.heads;
    const auto row = static_cast<std::size_t>(sample) * a.positions;
    first = row * stride + static_cast<std::size_t>(head) * 3 * a.features;
    output = row * a.width() + static_cast<std::size_t>(head) * a.features;
    matrix = (static_cast<std::size_t>(sample) * a.heads + head) * a.positions * a.positions;
  }
};

template <class Real>
__device__ __forceinline__ Real dot(const Real* a, const Real* b, int count) {
  Real sum = 0;
  for (int c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

template <class Real>
__device__ __forceinline__ Real score_factor(const AttentionOperation& a) {
  return Real(1) / sqrt(static_cast<Real>(a.features));
}

template <class Real>
__global__ void __launch_bounds__(kAttentionThreads)
    attend_kernel(AttentionArguments<Real> arguments) {
  const int thread = static_cast<int>(blockIdx.x * kAttentionThreads + threadIdx.x);
  if (thread >= arguments.queries) return;
  const AttentionOperation& a = arguments.attention;
  const HeadOf<Real> at(a, thread);
  const int i = at.position, seen = a.causal ? i + 1 : a.positions;
  const Real* q = arguments.batch.at(blockIdx.z, arguments.input) + at.first;
  const Real *k = q + a.features, *v = k + a.features;
  q += static_cast<std::size_t>(i) * at.stride;
  Real* p = arguments.batch.at(blockIdx.z, arguments.probabilities) + at.matrix +
            static_cast<std::size_t>(i) * a.positions;
  for (int j = 0; j < seen; ++j)
    p[j] = dot(q, k + static_cast<std::size_t>(j) * at.stride, a.features);
  Real most = p[0], sum = 0;
  for (int j = 1; j < seen; ++j) most = p[j] > most ? p[j] : most;
  for (int j = 0; j < seen; ++j) {
    p[j] = exp(score_factor<Real>(a) * (p[j] - most));
    sum += p[j];
  }
  for (int j = 0; j < seen; ++j) p[j] *= Real(1) / sum;
  for (int j = seen; j < a.positions; ++j) p[j] = 0;
  Real* y = arguments.batch.at(blockIdx.z, arguments.output) + at.output +
            static_cast<std::size_t>(i) * a.width();
  for (int c = 0; c < a.features; ++c) {
    Real value = 0;
    for (int j = 0; j < seen; ++j) value += p[j] * v[static_cast<std::size_t>(j) * at.stride + c];
    y[c] = value;
  }
}

/// dS and dQ of a query.
template <class Real>
__global__ void __launch_bounds__(kAttentionThreads)
    query_kernel(AttentionArguments<Real> arguments) {
  const int thread = static_cast<int>(blockIdx.x * kAttentionThreads + threadIdx.x);
  if (thread >= arguments.queries) return;
  const AttentionOperation& a = arguments.attention;
  const HeadOf<Real> at(a, thread);
  const std::size_t row = at.matrix + static_cast<std::size_t>(at.position) * a.positions;
  const Real* k = arguments.batch.at(blockIdx.z, arguments.input) + at.first + a.features;
  const Real* v = k + a.features;
  const Real* p = arguments.batch.at(blockIdx.z, arguments.probabilities) + row;
  const Real* dy = arguments.batch.at(blockIdx.z, arguments.output_gradient) + at.output +
                   static_cast<std::size_t>(at.position) * a.width();
  Real* ds = arguments.batch.at(blockIdx.z, arguments.score_gradients) + row;
  Real sum = 0;
  for (int j = 0; j < a.positions; ++j) {
    ds[j] = dot(dy, v + static_cast<std::size_t>(j) * at.stride, a.features);
    sum += p[j] * ds[j];
  }
  for (int j = 0; j < a.positions; ++j) ds[j] = score_factor<Real>(a) * (p[j] * (ds[j] - sum));
  Real* dq = arguments.batch.at(blockIdx.z, arguments.input_gradient) + at.first +
             static_cast<std::size_t>(at.position) * at.stride;
  for (int c = 0; c < a.features; ++c) {
    Real value = 0;
    for (int j = 0; j < a.positions; ++j)
      value += ds[j] * k[static_cast<std::size_t>(j) * at.stride + c];
    dq[c] = value;
  }
}

/// dK and dV of a key.
template <class Real>
__global__ void __launch_bounds__(kAttentionThreads)
    key_kernel(AttentionArguments<Real> arguments) {
  const int thread = static_cast<int>(blockIdx.x * kAttentionThreads + threadIdx.x);
  if (thread >= arguments.queries) return;
  const AttentionOperation& a = arguments.attention;
  const HeadOf<Real> at(a, thread);
  const std::size_t column = at.matrix + static_cast<std::size_t>(at.position);
  const Real* q = arguments.batch.at(blockIdx.z, arguments.input) + at.first;
  const Real* p = arguments.batch.at(blockIdx.z, arguments.probabilities) + column;
  const Real* ds = arguments.batch.at(blockIdx.z, arguments.score_gradients) + column;
  const Real* dy = arguments.batch.at(blockIdx.z, arguments.output_gradient) + at.output;
  Real* dk = arguments.batch.at(blockIdx.z, arguments.input_gradient) + at.first + a.features +
             static_cast<std::size_t>(at.position) * at.stride;
  Real* dv = dk + a.features;
  for (int c = 0; c < a.features; ++c) {
    Real of_key = 0, of_value = 0;
    for (int i = 0; i < a.positions; ++i) {
      const auto row = static_cast<std::size_t>(i);
      of_key += ds[row * a.positions] * q[row * at.stride + c];
      of_value += p[row * a.positions] * dy[row * a.width() + c];
    }
    dk[c] = of_key;
    dv[c] = of_value;
  }
}

template <class Real>
AttentionArguments<Real> arguments_of(const LayerCall<Real>& call,
                                      const AttentionOperation& attention) {
  return {.batch = call.batch,
          .attention = attention,
          .input = call.layer.input(),
          .output = call.layer.output,
          .input_gradient = call.layer.input_gradient(),
          .output_gradient = call.layer.output_gradient(),
          .probabilities = call.layer.scratch,
          .score_gradients = call.extra,
          .queries = call.batch.samples * attention.heads * attention.positions};
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const AttentionOperation& attention) {
  const AttentionArguments<Real> arguments = arguments_of(call, attention);
  launch(
      attend_kernel<Real>,
      value_grid(static_cast<std::size_t>(arguments.queries), call.batch.peers, kAttentionThreads),
      kAttentionThreads, call.stream(), arguments);
}

template <class Real>
void backward(const LayerCall<Real>& call, const AttentionOperation& attention) {
  if (call.layer.input_gradient() == kNowhere) return;
  const AttentionArguments<Real> arguments = arguments_of(call, attention);
  const dim3 grid =
      value_grid(static_cast<std::size_t>(arguments.queries), call.batch.peers, kAttentionThreads);
  launch(query_kernel<Real>, grid, kAttentionThreads, call.stream(), arguments);
  launch(key_kernel<Real>, grid, kAttentionThreads, call.stream(), arguments);
}

std::size_t extra_values(const AttentionOperation& attention, int, int samples) {
  return static_cast<std::size_t>(samples) * static_cast<std::size_t>(attention.heads) *
         static_cast<std::size_t>(attention.positions) *
         static_cast<std::size_t>(attention.positions);
}

template void forward(const LayerCall<float>&, const AttentionOperation&);
template void forward(const LayerCall<double>&, const AttentionOperation&);
template void backward(const LayerCall<float>&, const AttentionOperation&);
template void backward(const LayerCall<double>&, const AttentionOperation&);

}  // namespace gossamer::gpu::cuda
