// Element-wise sums of order statistics (gpu/row_requests.hpp, OrderStatisticsRequest). A thread
// finds the values at one index in ascending order, each as the next one after the last, so it
// needs no memory for them; m² reads come from the cache, where m is the number of rows.
#include <algorithm>

#include "gpu/cuda/kernels/chunks.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/rows.hpp"

namespace gossamer::gpu::cuda {
namespace {

template <class Real>
struct RankTask {
  const Real* x;
  Real* out;
  const Real* const* rows;
  unsigned count, first, end;  ///< rows; ranks first … end − 1 of their values
  double factor;
  std::size_t length;
};

/// x + factor · Σ (v_k − x) at index i.
template <class Real>
__device__ Real at_index(const RankTask<Real>& task, std::size_t i) {
  const double x = static_cast<double>(in_global(task.x)[i]);
  double sum = 0;
  Real last = 0;
  unsigned last_row = task.count;  // none
  for (unsigned rank = 0; rank < task.end; ++rank) {
    Real next = 0;
    unsigned next_row = task.count;
    for (unsigned j = 0; j < task.count; ++j) {
      const Real value = in_global(task.rows[j])[i];
      const bool follows =
          last_row == task.count || last < value || (value == last && j > last_row);
      if (follows && (next_row == task.count || value < next)) next = value, next_row = j;
    }
    last = next;
    last_row = next_row;
    if (rank >= task.first) sum = plus(sum, minus(static_cast<double>(next), x));
  }
  return static_cast<Real>(plus(x, times(task.factor, sum)));
}

template <class Real>
__global__ void __launch_bounds__(kThreads)
    rank_kernel(const RankTask<Real>* tasks, unsigned requests) {
  const ChunkPosition position = chunk_position<Real>(requests);
  const RankTask<Real> task = tasks[position.row];
  const std::size_t end = min(task.length, position.begin + kChunk<Real>);
  for (std::size_t i = position.begin + threadIdx.x; i < end; i += kThreads)
    in_global(task.out)[i] = at_index(task, i);
}

}  // namespace

template <class Real>
void enqueue(StreamContext& context, std::span<const OrderStatisticsRequest<Real>> requests) {
  std::size_t rows = 0, longest = 0;
  for (const auto& request : requests) {
    rows += request.rows.size();
    longest = std::max(longest, request.length);
  }
  if (longest == 0) return;
  const std::size_t tasks_bytes = rounded_up(requests.size() * sizeof(RankTask<Real>), 16);
  const UploadRing::Slot slot = context.uploads().reserve(tasks_bytes + rows * sizeof(const Real*));
  auto* tasks = reinterpret_cast<RankTask<Real>*>(slot.host);
  auto* next = reinterpret_cast<const Real**>(slot.host + tasks_bytes);
  const auto* next_on_gpu = reinterpret_cast<const Real* const*>(slot.device + tasks_bytes);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto& r = requests[i];
    tasks[i] = {r.x,
                r.out,
                next_on_gpu,
                static_cast<unsigned>(r.rows.size()),
                static_cast<unsigned>(r.first),
                static_cast<unsigned>(r.first + r.count),
                r.factor,
                r.length};
    next = std::copy(r.rows.begin(), r.rows.end(), next);
    next_on_gpu += r.rows.size();
  }
  context.uploads().send(slot);
  launch(rank_kernel<Real>, blocks_for<Real>(requests.size(), longest), kThreads, context.stream(),
         reinterpret_cast<const RankTask<Real>*>(slot.device),
         static_cast<unsigned>(requests.size()));
}

template void enqueue(StreamContext&, std::span<const OrderStatisticsRequest<float>>);
template void enqueue(StreamContext&, std::span<const OrderStatisticsRequest<double>>);

}  // namespace gossamer::gpu::cuda
