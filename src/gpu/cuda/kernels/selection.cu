// Scattered adds at given indices, and stratified samples of a row.
#include <vector>

#include "base/philox.hpp"
#include "gpu/cuda/kernels/codecs.hpp"
#include "gpu/cuda/kernels/launch_chunks.hpp"
#include "gpu/cuda/kernels/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kSelectThreads = 256;

/// A request and its scratch word. `length` counts the chosen values.
struct ScatterTask {
  ScatterAddRequest request;
  std::size_t length;
  unsigned* unsound;
};

/// All threads that find a fault write the same.
__global__ void __launch_bounds__(kSelectThreads)
    check_kernel(const ScatterTask* tasks, unsigned count) {
  const ScatterTask task = tasks[blockIdx.x % count];
  const std::size_t i = std::size_t{blockIdx.x / count} * kSelectThreads + threadIdx.x;
  if (i >= task.length) return;
  const std::uint32_t index = task.request.indices[i];
  if (index >= task.request.length || (i > 0 && index <= task.request.indices[i - 1]))
    *task.unsound = 1;
}

__global__ void __launch_bounds__(kSelectThreads)
    scatter_add_kernel(const ScatterTask* tasks, unsigned count) {
  const ScatterTask task = tasks[blockIdx.x % count];
  const std::size_t i = std::size_t{blockIdx.x / count} * kSelectThreads + threadIdx.x;
  if (i >= task.length) return;
  const ScatterAddRequest& r = task.request;
  if (*task.unsound != 0) {
    if (i == 0 && r.fault != nullptr) report_fault(r.fault, r.tag);
    return;
  }
  float& value = r.values[r.indices[i]];
  value = plus(value, r.chosen[i]);
}

/// A sample of `row_length` values. `length` counts the chosen values; a thread has the four values
/// of one Philox block.
struct SampleTask {
  float* values;
  float* chosen;
  std::size_t row_length;
  StratifiedSample sample;
  std::size_t length;
};
constexpr std::size_t kSampleChunk = std::size_t{kSelectThreads} * 4;

template <bool kAdd>
__global__ void __launch_bounds__(kSelectThreads)
    sample_kernel(const SampleTask* tasks, unsigned count) {
  const SampleTask t = tasks[blockIdx.x % count];
  const StratifiedSample& s = t.sample;
  const std::size_t first = blockIdx.x / count * kSampleChunk + std::size_t{threadIdx.x} * 4;
  if (first >= s.count) return;
  const auto numbers =
      RandomKey(s.seed, s.peer, s.purpose, s.step).block(static_cast<std::uint32_t>(first / 4));
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::size_t i = first + k;
    if (i >= s.count) return;
    float& value = t.values[sampled_index(i, numbers[k], t.row_length, s.count)];
    if constexpr (kAdd) value = plus(value, t.chosen[i]);
    else t.chosen[i] = value;
  }
}

}  // namespace

// The host does not wait: the first kernel's verdict is in memory that the second kernel reads.
void enqueue(StreamContext& context, std::span<const ScatterAddRequest> requests) {
  if (requests.empty()) return;
  const std::size_t bytes = requests.size() * sizeof(unsigned);
  auto* unsound = static_cast<unsigned*>(context.scratch(bytes));
  GOSSAMER_CUDA(cudaMemsetAsync, unsound, 0, bytes, context.stream());
  std::vector<ScatterTask> tasks;
  for (const ScatterAddRequest& request : requests)
    tasks.push_back({request, request.count, unsound++});
  launch_chunks<ScatterTask>(context, check_kernel, tasks, kSelectThreads, kSelectThreads);
  launch_chunks<ScatterTask>(context, scatter_add_kernel, tasks, kSelectThreads, kSelectThreads);
}

void enqueue(StreamContext& context, std::span<const SampleRequest> requests) {
  std::vector<SampleTask> tasks;
  for (const SampleRequest& r : requests)
    tasks.push_back({const_cast<float*>(r.values), r.chosen, r.length, r.sample, r.sample.count});
  launch_chunks<SampleTask>(context, sample_kernel<false>, tasks, kSampleChunk, kSelectThreads);
}
void enqueue(StreamContext& context, std::span<const AddSampledRequest> requests) {
  std::vector<SampleTask> tasks;
  for (const AddSampledRequest& r : requests)
    tasks.push_back({r.values, const_cast<float*>(r.chosen), r.length, r.sample, r.sample.count});
  launch_chunks<SampleTask>(context, sample_kernel<true>, tasks, kSampleChunk, kSelectThreads);
}

}  // namespace gossamer::gpu::cuda
