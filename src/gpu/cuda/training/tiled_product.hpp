// A tiled matrix product whose operands are given by index functions: the convolution's three
// products without ever building a matrix of patches, and dense layers' products of few samples.
// Device code.
//
// A block of threads computes a kTileM × kTileN tile of C = A B, each thread 4 × 4 of it. A and B
// go through shared memory, kTileK of k at a time, and the next values are fetched while these are
// used. A tile of few values and long sums has too few threads to hide the time of its loads: then
// kGroups groups of threads compute the same tile, each with its part of the kTileK, and their sums
// are added in order.
//
// A Problem has:
//   m, n, k                    the product's extents
//   kAlongK                    whether neighbouring k of A (true) or neighbouring m are adjacent in
//                              memory
//   bind(peer)                 called first
//   row(m) → Row, step(k) → Step, a(Row, Step) → A[m, k]
//                              outside of the extents too, where a() is 0
//   b(k, n) → B[k, n]          within the extents
//   store(split, m, n, value)  within the extents
#pragma once

#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/vector.hpp"

namespace gossamer::gpu::cuda {

template <class RealType, int kM, int kN, int kK = 16, int kG = 1>
struct Tiles {
  using Real = RealType;
  static constexpr int kTileM = kM, kTileN = kN, kTileK = kK, kOwn = 4;
  static constexpr int kGroups = kG, kGroupK = kK / kG;
  static constexpr int kGroupThreads = (kM / kOwn) * (kN / kOwn), kThreads = kGroupThreads * kG;
  static constexpr int kLoadsA = kM * kTileK / kThreads,
                       kLoadsB = (kN * kTileK + kThreads - 1) / kThreads;
  /// Whether all threads load a value of B; otherwise B's tile is smaller than the block.
  static constexpr bool kAllLoadB = kN * kTileK % kThreads == 0;
  static constexpr int kPad = 4;  // spreads a column over the banks and keeps 16-byte alignment
  static_assert(kThreads % kTileK == 0 && (kThreads % kM == 0 || kM % kThreads == 0) &&
                kThreads % kN == 0 && kM * kTileK % kThreads == 0 && kTileK % kG == 0);
  static_assert(kAllLoadB || kLoadsB == 1);
  static_assert(kG == 1 || kN <= kTileK, "the sums of a group take the place of the tile of A");
};

/// Four neighbouring values of shared memory, at a 16-byte boundary.
template <class Real>
__device__ __forceinline__ void load_four(const Real* at, Real (&to)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i += Pack<Real>::kValues) {
    const Pack<Real> pack = load_pack(at + i);
#pragma unroll
    for (int v = 0; v < Pack<Real>::kValues; ++v) to[i + v] = pack.v[v];
  }
}

/// The values of a tile of A that a thread fetches: the l-th is A[m(l), k(l)] of the tile.
template <class Shape, bool kAlongK>
struct FetchPatternA {
  int thread;
  __device__ __forceinline__ int m(int l) const {
    if constexpr (kAlongK) return thread / Shape::kTileK + l * (Shape::kThreads / Shape::kTileK);
    else return (thread + l * Shape::kThreads) % Shape::kTileM;
  }
  __device__ __forceinline__ int k(int l) const {
    if constexpr (kAlongK) return thread % Shape::kTileK;
    else return (thread + l * Shape::kThreads) / Shape::kTileM;
  }
};

/// The tiles of A and B in a block's shared memory.
template <class Shape>
struct SharedTiles {
  using Real = typename Shape::Real;
  alignas(16) Real a[Shape::kTileK][Shape::kTileM + Shape::kPad];
  alignas(16) Real b[Shape::kTileK][Shape::kTileN + Shape::kPad];
};

/// One thread's share of fetching tiles: global memory → registers → shared memory.
template <class Shape, class Problem>
class TileFetch {
 public:
  /// Fetches for rows from m0 and columns from n0; k ends at k_end.
  __device__ __forceinline__ TileFetch(const Problem& problem, int m0, int n0, int k_end)
      : problem_(problem), n0_(n0), k_end_(k_end) {
#pragma unroll
    for (int l = 0; l < Shape::kLoadsA; ++l) rows_[l] = problem.row(m0 + pattern_.m(l));
  }

  /// Fetches the tiles from k0 on into registers.
  __device__ __forceinline__ void fetch(int k0) {
    if constexpr (Problem::kAlongK) {
      const auto step = problem_.step(k0 + pattern_.k(0));
      const bool inside = k0 + pattern_.k(0) < k_end_;
#pragma unroll
      for (int l = 0; l < Shape::kLoadsA; ++l)
        a_[l] = inside ? problem_.a(rows_[l], step) : Real(0);
    } else {
#pragma unroll
      for (int l = 0; l < Shape::kLoadsA; ++l) {
        const int k = k0 + pattern_.k(l);
        a_[l] = k < k_end_ ? problem_.a(rows_[l], problem_.step(k)) : Real(0);
      }
    }
#pragma unroll
    for (int l = 0; l < Shape::kLoadsB; ++l) {
      const int k = k0 + b_k_ + l * kStepB, n = n0_ + b_n_;
      b_[l] = k < k_end_ && n < problem_.n && loads_b_ ? problem_.b(k, n) : Real(0);
    }
  }

  /// Writes the fetched values to shared memory.
  __device__ __forceinline__ void write(SharedTiles<Shape>& tiles) const {
#pragma unroll
    for (int l = 0; l < Shape::kLoadsA; ++l) tiles.a[pattern_.k(l)][pattern_.m(l)] = a_[l];
#pragma unroll
    for (int l = 0; l < Shape::kLoadsB; ++l)
      if (loads_b_) tiles.b[b_k_ + l * kStepB][b_n_] = b_[l];
  }

 private:
  using Real = typename Shape::Real;
  static constexpr int kStepB = Shape::kThreads / Shape::kTileN;

  const Problem& problem_;
  int n0_, k_end_;
  FetchPatternA<Shape, Problem::kAlongK> pattern_{static_cast<int>(threadIdx.x)};
  int b_n_ = static_cast<int>(threadIdx.x) % Shape::kTileN;
  int b_k_ = static_cast<int>(threadIdx.x) / Shape::kTileN;
  bool loads_b_ = Shape::kAllLoadB || b_k_ < Shape::kTileK;
  typename Problem::Row rows_[Shape::kLoadsA];  // the same for all tiles
  Real a_[Shape::kLoadsA], b_[Shape::kLoadsB];
};

/// sums[i, j] += Σ_k A[own_m + i, k] B[k, own_n + j] over the group's part of the tiles.
template <class Shape, class Real = typename Shape::Real>
__device__ __forceinline__ void multiply(const SharedTiles<Shape>& tiles, int group, int own_m,
                                         int own_n, Real (&sums)[Shape::kOwn][Shape::kOwn]) {
#pragma unroll
  for (int l = 0; l < Shape::kGroupK; ++l) {
    const int k = group * Shape::kGroupK + l;
    Real a[Shape::kOwn], b[Shape::kOwn];
    load_four(&tiles.a[k][own_m], a);
    load_four(&tiles.b[k][own_n], b);
#pragma unroll
    for (int i = 0; i < Shape::kOwn; ++i)
#pragma unroll
      for (int j = 0; j < Shape::kOwn; ++j) sums[i][j] += a[i] * b[j];
  }
}

/// The first group's sums += those of the others, in order. All threads of the block call it, when
/// none reads the tiles any more.
template <class Shape, class Real = typename Shape::Real>
__device__ __forceinline__ void add_groups(SharedTiles<Shape>& tiles, int group, int lane,
                                           Real (&sums)[Shape::kOwn][Shape::kOwn]) {
  constexpr int kOwn = Shape::kOwn;
  Real* const shared = &tiles.a[0][0];
  for (int from = 1; from < Shape::kGroups; ++from) {
#pragma unroll
    for (int v = 0; v < kOwn * kOwn; ++v)
      if (group == from) shared[v * Shape::kGroupThreads + lane] = sums[v / kOwn][v % kOwn];
    __syncthreads();
#pragma unroll
    for (int v = 0; v < kOwn * kOwn; ++v)
      if (group == 0) sums[v / kOwn][v % kOwn] += shared[v * Shape::kGroupThreads + lane];
    __syncthreads();
  }
}

/// The grid: x, y: tiles of m and n; z: peers × splits. A split takes `share` of k, a multiple of
/// kTileK.
template <class Shape, class Problem>
__global__ void __launch_bounds__(Shape::kThreads)
    tiled_product(Problem problem, int splits, int share) {
  constexpr int kOwn = Shape::kOwn;
  GOSSAMER_SHARED(SharedTiles<Shape>, tiles);
  const int thread = static_cast<int>(threadIdx.x), split = static_cast<int>(blockIdx.z) % splits;
  problem.bind(blockIdx.z / static_cast<unsigned>(splits));
  const int m0 = static_cast<int>(blockIdx.x) * Shape::kTileM,
            n0 = static_cast<int>(blockIdx.y) * Shape::kTileN;
  const int k_begin = split * share, k_end = min(problem.k, k_begin + share);
  const int group = thread / Shape::kGroupThreads, lane = thread % Shape::kGroupThreads;
  const int own_m = lane / (Shape::kTileN / kOwn) * kOwn,
            own_n = lane % (Shape::kTileN / kOwn) * kOwn;

  TileFetch<Shape, Problem> next(problem, m0, n0, k_end);
  typename Shape::Real sums[kOwn][kOwn] = {};
  next.fetch(k_begin);
  next.write(tiles);
  __syncthreads();
  for (int k0 = k_begin; k0 < k_end; k0 += Shape::kTileK) {
    const bool more = k0 + Shape::kTileK < k_end;
    if (more) next.fetch(k0 + Shape::kTileK);
    multiply(tiles, group, own_m, own_n, sums);
    __syncthreads();
    if (more) next.write(tiles);
    __syncthreads();
  }
  if constexpr (Shape::kGroups > 1) add_groups(tiles, group, lane, sums);
  if (group > 0) return;
#pragma unroll
  for (int i = 0; i < kOwn; ++i)
#pragma unroll
    for (int j = 0; j < kOwn; ++j)
      if (m0 + own_m + i < problem.m && n0 + own_n + j < problem.n)
        problem.store(split, m0 + own_m + i, n0 + own_n + j, sums[i][j]);
}

/// Computes the problem of each of `peers` peers, each in `splits` parts of k.
template <class Shape, class Problem>
void launch_tiled(cudaStream_t stream, const Problem& problem, int peers, int splits) {
  const int even_share = (problem.k + splits - 1) / splits;
  const int share =
      static_cast<int>(rounded_up(static_cast<std::size_t>(even_share), Shape::kTileK));
  launch(tiled_product<Shape, Problem>,
         dim3(static_cast<unsigned>((problem.m + Shape::kTileM - 1) / Shape::kTileM),
              static_cast<unsigned>((problem.n + Shape::kTileN - 1) / Shape::kTileN),
              static_cast<unsigned>(peers * splits)),
         Shape::kThreads, stream, problem, splits, share);
}

}  // namespace gossamer::gpu::cuda
