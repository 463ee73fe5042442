// Values at given and at random places of a row, taken and put back.
#include <vector>

#include "base/philox.hpp"
#include "gpu/cuda/conversion.hpp"
#include "gpu/cuda/selection.hpp"
#include "gpu/cuda/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kThreads = 256;

/// `length` counts the chosen values.
struct PlacedTask {
  PlacedRequest request;
  std::size_t length;
  unsigned* unsound;
};

/// All who find a fault write the same.
__global__ void __launch_bounds__(kThreads) check_kernel(const PlacedTask* tasks, unsigned count) {
  const PlacedTask task = tasks[blockIdx.x % count];
  const std::size_t i = std::size_t{blockIdx.x / count} * kThreads + threadIdx.x;
  if (i >= task.length) return;
  const std::uint32_t index = task.request.indices[i];
  if (index >= task.request.length || (i > 0 && index <= task.request.indices[i - 1]))
    *task.unsound = 1;
}

__global__ void __launch_bounds__(kThreads)
    add_placed_kernel(const PlacedTask* tasks, unsigned count) {
  const PlacedTask task = tasks[blockIdx.x % count];
  const std::size_t i = std::size_t{blockIdx.x / count} * kThreads + threadIdx.x;
  if (i >= task.length) return;
  const PlacedRequest& r = task.request;
  if (*task.unsound != 0) {
    if (i == 0 && r.fault != nullptr) tell(r.fault, r.tag);
    return;
  }
  float& value = r.values[r.indices[i]];
  value = plus(value, r.chosen[i]);
}

/// `length` counts the chosen values. A thread has the four of one Philox block.
struct SampledTask {
  SampledRequest request;
  std::size_t length;
};
constexpr std::size_t kSampledChunk = std::size_t{kThreads} * 4;

template <bool kAdd>
__global__ void __launch_bounds__(kThreads)
    sampled_kernel(const SampledTask* tasks, unsigned count) {
  const SampledRequest r = tasks[blockIdx.x % count].request;
  const std::size_t first = blockIdx.x / count * kSampledChunk + std::size_t{threadIdx.x} * 4;
  if (first >= r.count) return;
  const auto numbers =
      RandomKey(r.seed, r.peer, r.purpose, r.step).block(static_cast<std::uint32_t>(first / 4));
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::size_t i = first + k;
    if (i >= r.count) return;
    float& value = r.values[sampled_index(i, numbers[k], r.length, r.count)];
    if constexpr (kAdd) value = plus(value, r.chosen[i]);
    else r.chosen[i] = value;
  }
}

std::vector<SampledTask> sampled_tasks(std::span<const SampledRequest> requests) {
  std::vector<SampledTask> tasks;
  for (const SampledRequest& request : requests) tasks.push_back({request, request.count});
  return tasks;
}

}  // namespace

// The host waits for none of it: what the first kernel finds, the second one reads.
void add_placed(Lane& lane, std::span<const PlacedRequest> requests) {
  if (requests.empty()) return;
  const std::size_t bytes = requests.size() * sizeof(unsigned);
  auto* unsound = static_cast<unsigned*>(lane.scratch(bytes));
  GOSSAMER_CUDA(cudaMemsetAsync, unsound, 0, bytes, lane.stream());
  std::vector<PlacedTask> tasks;
  for (const PlacedRequest& request : requests)
    tasks.push_back({request, request.count, unsound++});
  launch_chunks<PlacedTask>(lane, check_kernel, tasks, kThreads, kThreads);
  launch_chunks<PlacedTask>(lane, add_placed_kernel, tasks, kThreads, kThreads);
}

void sample(Lane& lane, std::span<const SampledRequest> requests) {
  launch_chunks<SampledTask>(lane, sampled_kernel<false>, sampled_tasks(requests), kSampledChunk,
                             kThreads);
}
void add_sampled(Lane& lane, std::span<const SampledRequest> requests) {
  launch_chunks<SampledTask>(lane, sampled_kernel<true>, sampled_tasks(requests), kSampledChunk,
                             kThreads);
}

}  // namespace gossamer::gpu::cuda
