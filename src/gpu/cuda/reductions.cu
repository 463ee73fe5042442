// Sums over rows, in double, in two stages: each block sums one piece of a row, then one block the
// pieces of a row. Which thread adds what depends on the length alone.
#include "gpu/cuda/reductions.hpp"

#include <algorithm>

#include "gpu/cuda/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kThreads = 256;
/// Values of a thread between two looks at the row's end.
constexpr int kQuad = 4;
constexpr std::size_t kLeastPiece = std::size_t{kThreads} * kQuad * 4;
constexpr std::size_t kMostPieces = 1024;

template <class Real>
struct ReduceTask {
  const Real* a;
  const Real* b;
  std::size_t length;
  std::size_t piece;  ///< values; a multiple of kThreads · kQuad
  bool vectors;
};

std::size_t piece_values(std::size_t length) {
  const std::size_t least = std::max(kLeastPiece, pieces_of(length, kMostPieces));
  return rounded_up(least, std::size_t{kThreads} * kQuad);
}

struct Product {
  template <class Real>
  __device__ double operator()(Real a, Real b) const {
    return static_cast<double>(a) * static_cast<double>(b);
  }
};
struct SquaredDifference {
  template <class Real>
  __device__ double operator()(Real a, Real b) const {
    const double difference = static_cast<double>(a) - static_cast<double>(b);
    return difference * difference;
  }
};

template <class Real>
__device__ __forceinline__ void load_quad(const Real* at, bool vectors, Real (&to)[kQuad]) {
  if (vectors) {
#pragma unroll
    for (int i = 0; i < kQuad; i += Pack<Real>::kValues) {
      const Pack<Real> pack = load_pack(at + i);
#pragma unroll
      for (int v = 0; v < Pack<Real>::kValues; ++v) to[i + v] = pack.v[v];
    }
  } else {
#pragma unroll
    for (int i = 0; i < kQuad; ++i) to[i] = at[i];
  }
}

/// partial[request, piece]: Σ term(a_i, b_i) over the piece.
template <class Real, class Term>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const ReduceTask<Real>* tasks, double* partial, Term term) {
  __shared__ double room[kThreads];
  const ReduceTask<Real> task = tasks[blockIdx.y];
  const std::size_t begin = blockIdx.x * task.piece;
  const std::size_t end = min(task.length, begin + task.piece);
  double sums[kQuad] = {};
#pragma unroll 4
  for (std::size_t i = begin + std::size_t{threadIdx.x} * kQuad; i < end;
       i += std::size_t{kThreads} * kQuad) {
    if (i + kQuad <= end) {
      Real a[kQuad], b[kQuad];
      load_quad(task.a + i, task.vectors, a);
      load_quad(task.b + i, task.vectors, b);
#pragma unroll
      for (int v = 0; v < kQuad; ++v) sums[v] += term(a[v], b[v]);
    } else {
      for (std::size_t v = 0; i + v < end; ++v) sums[0] += term(task.a[i + v], task.b[i + v]);
    }
  }
  const double sum = block_sum<kThreads>((sums[0] + sums[1]) + (sums[2] + sums[3]), room);
  if (threadIdx.x == 0) partial[std::size_t{blockIdx.y} * gridDim.x + blockIdx.x] = sum;
}

/// result[request]: Σ over its pieces; those past a row's end are 0.
__global__ void __launch_bounds__(kThreads)
    finish_kernel(const double* partial, unsigned pieces, double* result) {
  __shared__ double room[kThreads];
  const double* mine = partial + std::size_t{blockIdx.x} * pieces;
  double sum = 0;
  for (unsigned i = threadIdx.x; i < pieces; i += kThreads) sum += mine[i];
  sum = block_sum<kThreads>(sum, room);
  if (threadIdx.x == 0) result[blockIdx.x] = sum;
}

/// Most requests at a time: one dimension of the grid.
constexpr std::size_t kMostRequests = 32768;

/// `rows(request)` gives a and b; `store(request, number)` takes the result.
template <class Real, class Request, class Term, class RowsOf, class Store>
void reduce(Lane& lane, std::span<Request> requests, Term term, RowsOf rows, Store store) {
  for (; requests.size() > kMostRequests; requests = requests.subspan(kMostRequests))
    reduce<Real>(lane, requests.first(kMostRequests), term, rows, store);
  if (requests.empty()) return;
  const Ring::Room room = lane.ring().reserve(requests.size() * sizeof(ReduceTask<Real>));
  auto* tasks = reinterpret_cast<ReduceTask<Real>*>(room.host);
  std::size_t pieces = 1;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto [a, b] = rows(requests[i]);
    const std::size_t length = requests[i].length;
    tasks[i] = {a, b, length, piece_values(length), aligned(a) && aligned(b)};
    pieces = std::max(pieces, pieces_of(length, tasks[i].piece));
  }
  lane.ring().send(room);
  auto* results =
      static_cast<double*>(lane.scratch((pieces + 1) * requests.size() * sizeof(double)));
  double* partial = results + requests.size();
  const auto count = static_cast<unsigned>(requests.size()), wide = static_cast<unsigned>(pieces);
  launch(reduce_kernel<Real, Term>, dim3(wide, count), kThreads, lane.stream(),
         reinterpret_cast<const ReduceTask<Real>*>(room.device), partial, term);
  launch(finish_kernel, count, kThreads, lane.stream(), partial, wide, results);
  const auto* numbers =
      static_cast<const double*>(lane.fetch(results, requests.size() * sizeof(double)));
  for (std::size_t i = 0; i < requests.size(); ++i) store(requests[i], numbers[i]);
}

template <class Real>
std::pair<const Real*, const Real*> both_rows(const ReduceRequest<Real>& request) {
  return {request.a, request.b};
}

}  // namespace

template <class Real>
void dot(Lane& lane, std::span<ReduceRequest<Real>> requests) {
  reduce<Real>(lane, requests, Product{}, both_rows<Real>,
               [](auto& request, double sum) { request.result = sum; });
}
template <class Real>
void squared_distance(Lane& lane, std::span<ReduceRequest<Real>> requests) {
  reduce<Real>(lane, requests, SquaredDifference{}, both_rows<Real>,
               [](auto& request, double sum) { request.result = sum; });
}

#define GOSSAMER_REDUCTIONS(Real)                           \
  template void dot(Lane&, std::span<ReduceRequest<Real>>); \
  template void squared_distance(Lane&, std::span<ReduceRequest<Real>>);
GOSSAMER_REDUCTIONS(float)
GOSSAMER_REDUCTIONS(double)

}  // namespace gossamer::gpu::cuda
