// Squared distances between rows (gpu/row_requests.hpp, DistancesRequest): a thread block adds one
// block of one pair of rows, and the sums of a pair's blocks are then added in order, so that the
// bits are the CPU's.
#include <algorithm>
#include <vector>

#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/rows.hpp"
#include "gpu/cuda/kernels/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kDistanceThreads = static_cast<int>(kDistanceLanes);
/// Partial sums of one launch: 32 MiB.
constexpr std::size_t kMostPartialSums = std::size_t{4} << 20;

template <class Real>
struct DistanceTask {
  const Real *a, *b;
  std::size_t length;
};

/// partial[block, pair]. Blocks that run together work on the same block of different pairs, so
/// that a row that several pairs use is read from memory once and then from the cache.
template <class Real>
__global__ void __launch_bounds__(kDistanceThreads)
    distance_kernel(const DistanceTask<Real>* tasks, unsigned pairs, double* partial) {
  GOSSAMER_SHARED(double, lanes, [kDistanceThreads]);
  const DistanceTask<Real> task = tasks[blockIdx.x % pairs];
  const std::size_t begin = std::size_t{blockIdx.x / pairs} * kDistanceBlock;
  const std::size_t end = min(task.length, begin + kDistanceBlock);
  double sum = 0;
  for (std::size_t i = begin + threadIdx.x; i < end; i += kDistanceThreads) {
    const double difference =
        minus(static_cast<double>(in_global(task.a)[i]), static_cast<double>(in_global(task.b)[i]));
    sum = plus(sum, times(difference, difference));
  }
  sum = block_sum<kDistanceThreads>(sum, lanes);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// distances[pair]: the sum over the blocks.
__global__ void __launch_bounds__(kDistanceThreads)
    add_blocks(const double* partial, unsigned blocks, unsigned pairs, double* distances) {
  const unsigned pair = blockIdx.x * kDistanceThreads + threadIdx.x;
  if (pair >= pairs) return;
  double sum = 0;
#pragma unroll 8
  for (unsigned b = 0; b < blocks; ++b) sum += partial[std::size_t{b} * pairs + pair];
  distances[pair] = sum;
}

/// Fills `results` [tasks] with the distances of pairs whose partial sums fit one launch.
template <class Real>
void serve(StreamContext& context, std::span<const DistanceTask<Real>> tasks, double* results) {
  std::size_t longest = 0;
  for (const DistanceTask<Real>& task : tasks) longest = std::max(longest, task.length);
  const auto pairs = static_cast<unsigned>(tasks.size());
  const auto blocks =
      static_cast<unsigned>(std::max<std::size_t>(1, pieces_of(longest, kDistanceBlock)));
  const UploadRing::Slot slot = context.uploads().reserve(tasks.size_bytes());
  std::copy(tasks.begin(), tasks.end(), reinterpret_cast<DistanceTask<Real>*>(slot.host));
  context.uploads().send(slot);
  const std::size_t sums = std::size_t{pairs} * blocks;
  auto* distances = static_cast<double*>(context.scratch((pairs + sums) * sizeof(double)));
  double* partial = distances + pairs;
  launch(distance_kernel<Real>, static_cast<unsigned>(sums), kDistanceThreads, context.stream(),
         reinterpret_cast<const DistanceTask<Real>*>(slot.device), pairs, partial);
  launch(add_blocks, static_cast<unsigned>(pieces_of(pairs, kDistanceThreads)), kDistanceThreads,
         context.stream(), partial, blocks, pairs, distances);
  const auto* fetched =
      static_cast<const double*>(context.fetch(distances, tasks.size() * sizeof(double)));
  std::copy_n(fetched, tasks.size(), results);
}

}  // namespace

template <class Real>
void enqueue(StreamContext& context, std::span<const DistancesRequest<Real>> requests) {
  std::vector<DistanceTask<Real>> tasks;
  std::size_t longest = 0;
  for (const DistancesRequest<Real>& r : requests) {
    for (std::size_t i = 0; i < (r.to_first ? 1 : r.rows.size()); ++i)
      for (std::size_t j = i + 1; j < r.rows.size(); ++j)
        tasks.push_back({r.rows[i], r.rows[j], r.length});
    longest = std::max(longest, r.length);
  }
  const std::size_t together = std::max<std::size_t>(
      1, kMostPartialSums / std::max<std::size_t>(1, pieces_of(longest, kDistanceBlock)));
  std::vector<double> results(tasks.size());
  for (std::size_t begin = 0; begin < tasks.size(); begin += together) {
    const std::size_t count = std::min(together, tasks.size() - begin);
    serve<Real>(context, std::span(tasks).subspan(begin, count), results.data() + begin);
  }
  const double* next = results.data();
  for (const DistancesRequest<Real>& r : requests) {
    std::copy_n(next, r.pairs(), r.distances);
    next += r.pairs();
  }
}

template void enqueue(StreamContext&, std::span<const DistancesRequest<float>>);
template void enqueue(StreamContext&, std::span<const DistancesRequest<double>>);

}  // namespace gossamer::gpu::cuda
