// A direction is normalised by one thread block, in the lanes of the CPU; a value of M v is added
// by kProductLanes threads, and one of Mᵀ v by one thread, row after row. So the bits are the
// CPU's.
#include <algorithm>
#include <vector>

#include "gpu/cuda/kernels/launch_chunks.hpp"
#include "gpu/cuda/kernels/low_rank.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kLowRankThreads = static_cast<int>(kNormLanes);
constexpr int kLanes = static_cast<int>(kProductLanes);
constexpr std::size_t kAddChunk = std::size_t{kLowRankThreads} * 4;

/// The direction of a matrix. `length`: its values; `first`: its place among those of the request.
template <class Real>
struct DirectionTask {
  Real* v;
  std::size_t length, first;
  RandomKey key;
};

/// v ← v / ‖v‖, or random signs / sqrt(length).
template <class Real>
__global__ void __launch_bounds__(kLowRankThreads)
    normalise_kernel(const DirectionTask<Real>* tasks, unsigned) {
  GOSSAMER_SHARED(double, lanes, [kLowRankThreads]);
  const DirectionTask<Real> task = tasks[blockIdx.x];
  Real* const v = in_global(task.v);
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < task.length; i += kLowRankThreads) {
    const double value = static_cast<double>(v[i]);
    sum = plus(sum, times(value, value));
  }
  const double norm = sqrt(block_sum<kLowRankThreads>(sum, lanes));
  const bool sound = norm > 0 && norm <= 1.7976931348623157e308;
  const Real size = static_cast<Real>(over(1.0, sqrt(static_cast<double>(task.length))));
  for (std::size_t i = threadIdx.x; i < task.length; i += kLowRankThreads)
    v[i] = sound ? static_cast<Real>(over(static_cast<double>(v[i]), norm))
                 : times(static_cast<Real>(random_sign(task.key, task.first + i)), size);
}

/// A product of one matrix. `length`: its values.
template <class Real>
struct ProductTask {
  const Real *matrix, *v;
  Real* out;
  std::size_t rows, columns, length;
};

/// out ← M v.
template <class Real>
__global__ void __launch_bounds__(kLowRankThreads)
    right_kernel(const ProductTask<Real>* tasks, unsigned count) {
  GOSSAMER_SHARED(Real, lanes, [kLowRankThreads]);
  const ProductTask<Real> task = tasks[blockIdx.x % count];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes;
  const std::size_t row =
      std::size_t{blockIdx.x / count} * (kLowRankThreads / kLanes) + thread / kLanes;
  Real sum = 0;
  if (row < task.rows)
    for (std::size_t k = lane; k < task.columns; k += kLanes)
      sum = plus(sum, times(in_global(task.matrix)[row * task.columns + k], in_global(task.v)[k]));
  lanes[thread] = sum;
  __syncthreads();
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane < half) lanes[thread] = plus(lanes[thread], lanes[thread + half]);
    __syncthreads();
  }
  if (lane == 0 && row < task.rows) task.out[row] = lanes[thread];
}

/// out ← Mᵀ v, or the vector M where there is no v.
template <class Real>
__global__ void __launch_bounds__(kLowRankThreads)
    left_kernel(const ProductTask<Real>* tasks, unsigned count) {
  const ProductTask<Real> task = tasks[blockIdx.x % count];
  const std::size_t column = std::size_t{blockIdx.x / count} * kLowRankThreads + threadIdx.x;
  if (column >= task.length) return;
  const Real* const matrix = in_global(task.matrix);
  if (task.v == nullptr) {
    task.out[column] = matrix[column];
    return;
  }
  Real sum = 0;
  for (std::size_t i = 0; i < task.rows; ++i)
    sum = plus(sum, times(in_global(task.v)[i], matrix[i * task.columns + column]));
  task.out[column] = sum;
}

/// The update of one matrix. `length`: its values. `factor`: of theirs − own, or of own − theirs if
/// `reversed`.
template <class Real>
struct AddTask {
  Real* matrix;
  const Real *v, *own, *theirs;
  Real* next;
  std::size_t columns, length;
  bool left, reversed;
  Real factor;
};

template <class Real>
__global__ void __launch_bounds__(kLowRankThreads)
    add_kernel(const AddTask<Real>* tasks, unsigned count) {
  const AddTask<Real> task = tasks[blockIdx.x % count];
  const std::size_t begin = std::size_t{blockIdx.x / count} * kAddChunk;
  const std::size_t end = min(task.length, begin + kAddChunk);
  for (std::size_t k = begin + threadIdx.x; k < end; k += kLowRankThreads) {
    const std::size_t i = k / task.columns, j = k % task.columns;
    const std::size_t at = task.v == nullptr ? k : task.left ? j : i;
    const Real own = in_global(task.own)[at], theirs = in_global(task.theirs)[at];
    const Real difference = task.reversed ? minus(own, theirs) : minus(theirs, own);
    Real& value = in_global(task.matrix)[k];
    if (task.v == nullptr) {
      value = plus(value, times(task.factor, difference));
      continue;
    }
    value = task.left ? plus(value, times(times(task.factor, task.v[i]), difference))
                      : plus(value, times(times(task.factor, difference), task.v[j]));
    if ((task.left ? i : j) == 0) task.next[at] = difference;
  }
}

/// launch_chunks() for tasks of very different lengths, a tensor each: those that are alike are
/// launched together, because each launch has as many blocks for every task as its longest takes.
template <class Task>
void launch_alike(StreamContext& context, void (*kernel)(const Task*, unsigned),
                  std::vector<Task>& tasks, std::size_t chunk) {
  std::sort(tasks.begin(), tasks.end(),
            [](const Task& a, const Task& b) { return a.length > b.length; });
  for (auto first = tasks.begin(); first != tasks.end();) {
    const std::size_t shortest = first->length / 4;
    const auto last = std::find_if(first, tasks.end(), [&](const Task& task) {
      return task.length < shortest && first->length > chunk;
    });
    launch_chunks<Task>(context, kernel, std::span(first, last), chunk, kLowRankThreads);
    first = last;
  }
}

}  // namespace

template <class Real>
void enqueue(StreamContext& context, std::span<const ProjectRequest<Real>> requests) {
  std::vector<DirectionTask<Real>> directions;
  std::vector<ProductTask<Real>> right, left;
  std::size_t longest = 0;
  for (const ProjectRequest<Real>& r : requests)
    for_each_matrix(
        r.matrices, r.left,
        [&](const MatrixShape& shape, std::size_t direction, std::size_t product, std::size_t) {
          Real* const v = shape.is_vector() ? nullptr : r.directions + direction;
          if (v != nullptr)
            directions.push_back({v, shape.direction(r.left), direction, r.signs.key()});
          longest = std::max(longest, shape.direction(r.left));
          (r.left || v == nullptr ? left : right)
              .push_back({r.x + shape.offset, v, r.products + product, shape.rows, shape.columns,
                          shape.product(r.left)});
        });
  launch_chunks<DirectionTask<Real>>(context, normalise_kernel<Real>, directions, longest,
                                     kLowRankThreads);
  launch_alike(context, right_kernel<Real>, right, kLowRankThreads / kLanes);
  launch_alike(context, left_kernel<Real>, left, kLowRankThreads);
}

template <class Real>
void enqueue(StreamContext& context, std::span<const AddProductRequest<Real>> requests) {
  std::vector<AddTask<Real>> tasks;
  for (const AddProductRequest<Real>& r : requests)
    for_each_matrix(
        r.matrices, r.left,
        [&](const MatrixShape& shape, std::size_t direction, std::size_t product,
            std::size_t next) {
          const bool vector = shape.is_vector(), reversed = r.reversed && !vector;
          tasks.push_back({r.x + shape.offset, vector ? nullptr : r.directions + direction,
                           r.own + product, r.theirs + product, vector ? nullptr : r.next + next,
                           shape.columns, shape.length(), r.left, reversed,
                           reversed ? -r.factor : r.factor});
        });
  launch_alike(context, add_kernel<Real>, tasks, kAddChunk);
}

template void enqueue(StreamContext&, std::span<const ProjectRequest<float>>);
template void enqueue(StreamContext&, std::span<const ProjectRequest<double>>);
template void enqueue(StreamContext&, std::span<const AddProductRequest<float>>);
template void enqueue(StreamContext&, std::span<const AddProductRequest<double>>);

}  // namespace gossamer::gpu::cuda
