// The random projection of a row (gpu/row_requests.hpp, SketchRequest): s = Σ_b E_b H D_b x_b. A
// thread block takes a run of the row's blocks b, and a thread four of the m values; the sums of
// all runs are then added in order.
#include <algorithm>
#include <bit>

#include "base/philox.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/rows.hpp"
#include "gpu/cuda/kernels/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kSketchThreads = 256;
constexpr int kSketchOwn = static_cast<int>(kSketchLength) / kSketchThreads;  // values of a thread
constexpr int kSignWords = 2 * static_cast<int>(kSketchLength) / 32;
/// Most runs of a row: enough for every GPU's multiprocessors, few enough to add.
constexpr std::size_t kMostSketchRuns = 512;

template <class Real>
struct SketchTask {
  const Real* row;
  std::size_t length;
  std::size_t run;  ///< blocks of the row in one run
  RandomKey key;
};

/// The random bits of block b: m for D_b, then m for E_b, the highest of each word first.
__device__ __forceinline__ void draw_signs(const RandomKey& key, std::size_t b, int m,
                                           std::uint32_t* signs) {
  const int draws = (2 * m + 127) / 128;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < draws) {
    const auto numbers = key.block(static_cast<std::uint32_t>(b * draws + thread));
    for (int i = 0; i < 4; ++i) signs[4 * thread + i] = numbers[i];
  }
}
__device__ __forceinline__ double signed_as(const std::uint32_t* signs, int bit, double value) {
  return (signs[bit / 32] >> (31 - bit % 32)) & 1U ? -value : value;
}

/// partial[request, run, m].
template <class Real>
__global__ void __launch_bounds__(kSketchThreads)
    sketch_kernel(const SketchTask<Real>* tasks, int m, double* partial) {
  GOSSAMER_SHARED(double, y, [kSketchLength]);
  GOSSAMER_SHARED(std::uint32_t, signs, [kSignWords]);
  const SketchTask<Real> task = tasks[blockIdx.y];
  const int thread = static_cast<int>(threadIdx.x);
  const std::size_t blocks = (task.length + m - 1) / m;
  const std::size_t first = blockIdx.x * task.run, last = min(blocks, first + task.run);
  const double scale = 1 / sqrt(static_cast<double>(m));
  double sums[kSketchOwn] = {};
  for (std::size_t b = first; b < last; ++b) {
    draw_signs(task.key, b, m, signs);
    __syncthreads();
    for (int k = thread; k < m; k += kSketchThreads) {
      const std::size_t i = b * m + k;
      y[k] = i < task.length ? signed_as(signs, k, static_cast<double>(task.row[i])) : 0.0;
    }
    __syncthreads();
    for (int half = 1; half < m; half *= 2) {
      for (int pair = thread; pair < m / 2; pair += kSketchThreads) {
        const int k = pair / half * (2 * half) + pair % half;
        const double a = y[k], c = y[k + half];
        y[k] = a + c;
        y[k + half] = a - c;
      }
      __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < kSketchOwn; ++p) {
      const int k = p * kSketchThreads + thread;
      if (k < m) sums[p] += signed_as(signs, m + k, scale * y[k]);
    }
    __syncthreads();
  }
  double* mine = partial + (std::size_t{blockIdx.y} * gridDim.x + blockIdx.x) * m;
#pragma unroll
  for (int p = 0; p < kSketchOwn; ++p) {
    const int k = p * kSketchThreads + thread;
    if (k < m) mine[k] = sums[p];
  }
}

/// sketch[request, m]: the sum over the runs.
__global__ void __launch_bounds__(kSketchThreads)
    add_runs(const double* partial, unsigned runs, int m, double* sketch) {
  const int k = static_cast<int>(blockIdx.x * kSketchThreads + threadIdx.x);
  if (k >= m) return;
  const double* mine = partial + std::size_t{blockIdx.y} * runs * m + k;
  double sum = 0;
#pragma unroll 8
  for (unsigned r = 0; r < runs; ++r) sum += mine[std::size_t{r} * m];
  sketch[std::size_t{blockIdx.y} * m + k] = sum;
}

/// Serves a bounded number of requests whose sketches have the same length.
template <class Real>
void sketch_alike(StreamContext& context, std::span<const SketchRequest<Real>> requests) {
  const std::size_t m = sketch_length(requests.front().length);
  const UploadRing::Slot slot =
      context.uploads().reserve(requests.size() * sizeof(SketchTask<Real>));
  auto* tasks = reinterpret_cast<SketchTask<Real>*>(slot.host);
  std::size_t runs = 1;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t blocks = pieces_of(requests[i].length, m);
    const std::size_t run = std::max<std::size_t>(1, pieces_of(blocks, kMostSketchRuns));
    tasks[i] = {requests[i].row, requests[i].length, run,
                RandomKey(requests[i].seed, kNoPeer, Purpose::sketch, 0)};
    runs = std::max(runs, pieces_of(blocks, run));
  }
  context.uploads().send(slot);
  const std::size_t values = requests.size() * m;
  auto* sketches = static_cast<double*>(context.scratch(values * (runs + 1) * sizeof(double)));
  double* partial = sketches + values;
  const auto count = static_cast<unsigned>(requests.size()), wide = static_cast<unsigned>(runs);
  launch(sketch_kernel<Real>, dim3(wide, count), kSketchThreads, context.stream(),
         reinterpret_cast<const SketchTask<Real>*>(slot.device), static_cast<int>(m), partial);
  launch(add_runs, dim3(static_cast<unsigned>(pieces_of(m, kSketchThreads)), count), kSketchThreads,
         context.stream(), partial, wide, static_cast<int>(m), sketches);
  const auto* results =
      static_cast<const double*>(context.fetch(sketches, values * sizeof(double)));
  for (std::size_t i = 0; i < requests.size(); ++i)
    std::copy_n(results + i * m, m, requests[i].sketch);
}

}  // namespace

template <class Real>
void enqueue(StreamContext& context, std::span<const SketchRequest<Real>> requests) {
  constexpr std::size_t together =
      64;  // bounds the partial sums: 64 · 512 runs · 1024 values · 8 bytes = 256 MiB
  while (!requests.empty()) {
    const std::size_t m = sketch_length(requests.front().length);
    std::size_t count = 1;
    while (count < std::min(together, requests.size()) &&
           sketch_length(requests[count].length) == m)
      ++count;
    sketch_alike(context, requests.first(count));
    requests = requests.subspan(count);
  }
}

template void enqueue(StreamContext&, std::span<const SketchRequest<float>>);
template void enqueue(StreamContext&, std::span<const SketchRequest<double>>);

}  // namespace gossamer::gpu::cuda
