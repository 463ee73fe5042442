// Embeddings. Forward a thread per output. Backward a thread per value of the table, which looks
// through the tokens in the order of the batch and adds those of its row: no atomic additions,
// whose order would change the bits.
#include <limits>

#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kEmbeddingThreads = 256;

template <class Real>
struct EmbeddingArguments {
  Batch<Real> batch;
  EmbeddingOperation embedding;
  std::size_t input, output, output_gradient;
  int tokens;  ///< of all samples of a peer
};

/// The number of a row of the table, or −1.
template <class Real>
__device__ __forceinline__ int row_of(const EmbeddingOperation& e, Real token) {
  const Real number = rint(token);
  return number >= Real(0) && number < static_cast<Real>(e.vocabulary) ? static_cast<int>(number)
                                                                       : -1;
}

template <class Real>
__global__ void __launch_bounds__(kEmbeddingThreads) embed_kernel(EmbeddingArguments<Real> a) {
  const int i = static_cast<int>(blockIdx.x * kEmbeddingThreads + threadIdx.x);
  const int features = a.embedding.features;
  if (i >= a.tokens * features) return;
  const int row = row_of(a.embedding, a.batch.at(blockIdx.z, a.input)[i / features]);
  const Real* table = a.batch.parameters(blockIdx.z) + a.embedding.table;
  a.batch.at(blockIdx.z, a.output)[i] =
      row < 0 ? std::numeric_limits<Real>::quiet_NaN()
              : table[static_cast<std::size_t>(row) * features + i % features];
}

template <class Real>
__global__ void __launch_bounds__(kEmbeddingThreads) table_kernel(EmbeddingArguments<Real> a) {
  const std::size_t i = std::size_t{blockIdx.x} * kEmbeddingThreads + threadIdx.x;
  const auto features = static_cast<std::size_t>(a.embedding.features);
  if (i >= static_cast<std::size_t>(a.embedding.vocabulary) * features) return;
  const int row = static_cast<int>(i / features);
  const Real* x = a.batch.at(blockIdx.z, a.input);
  const Real* dy = a.batch.at(blockIdx.z, a.output_gradient) + i % features;
  Real sum = 0;
  for (int t = 0; t < a.tokens; ++t)
    if (row_of(a.embedding, x[t]) == row) sum += dy[static_cast<std::size_t>(t) * features];
  a.batch.gradient(blockIdx.z)[a.embedding.table + i] = sum;
}

template <class Real>
EmbeddingArguments<Real> arguments_of(const LayerCall<Real>& call,
                                      const EmbeddingOperation& embedding) {
  return {.batch = call.batch,
          .embedding = embedding,
          .input = call.layer.input(),
          .output = call.layer.output,
          .output_gradient = call.layer.output_gradient(),
          .tokens = call.batch.samples * embedding.tokens};
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const EmbeddingOperation& embedding) {
  const EmbeddingArguments<Real> arguments = arguments_of(call, embedding);
  const std::size_t values =
      static_cast<std::size_t>(arguments.tokens) * static_cast<std::size_t>(embedding.features);
  launch(embed_kernel<Real>, value_grid(values, call.batch.peers, kEmbeddingThreads),
         kEmbeddingThreads, call.stream(), arguments);
}

template <class Real>
void backward(const LayerCall<Real>& call, const EmbeddingOperation& embedding) {
  const EmbeddingArguments<Real> arguments = arguments_of(call, embedding);
  const std::size_t values =
      static_cast<std::size_t>(embedding.vocabulary) * static_cast<std::size_t>(embedding.features);
  launch(table_kernel<Real>, value_grid(values, call.batch.peers, kEmbeddingThreads),
         kEmbeddingThreads, call.stream(), arguments);
}

std::size_t extra_values(const EmbeddingOperation&, int, int) { return 0; }

template void forward(const LayerCall<float>&, const EmbeddingOperation&);
template void forward(const LayerCall<double>&, const EmbeddingOperation&);
template void backward(const LayerCall<float>&, const EmbeddingOperation&);
template void backward(const LayerCall<double>&, const EmbeddingOperation&);

}  // namespace gossamer::gpu::cuda
