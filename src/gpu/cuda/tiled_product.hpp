// A tiled matrix product whose operands are told by index functions: the convolution's three
// products without ever building a matrix of patches. Device code.
//
// A block of threads makes a kTileM × kTileN tile of C = A B, each thread 4 × 4 of it; A and B go
// through shared memory, kTileK of k at a time, and the next ones are fetched while these are used.
// A Problem tells:
//   m, n, k                    the product's extents
//   kAlongK                    whether neighbouring k of A (true) or neighbouring m lie together in
//   memory bind(peer)                 called first row(m) → Row, step(k) → Step, a(Row, Step) →
//   A[m, k]    (outside of the extents: anything; a() of it: 0) b(k, n) → B[k, n]          within
//   the extents store(split, m, n, value)  within the extents
#pragma once

#include "gpu/cuda/vector.hpp"

namespace gossamer::gpu::cuda {

template <class RealType, int kM, int kN, int kK = 16>
struct Tiles {
  using Real = RealType;
  static constexpr int kTileM = kM, kTileN = kN, kTileK = kK, kOwn = 4;
  static constexpr int kThreads = (kM / kOwn) * (kN / kOwn);
  static constexpr int kLoadsA = kM * kTileK / kThreads,
                       kLoadsB = (kN * kTileK + kThreads - 1) / kThreads;
  static constexpr bool kAllLoadB =
      kN * kTileK % kThreads == 0;  ///< or B's tile is smaller than the block
  static constexpr int kPad = 4;    // spreads a column over the banks; keeps 16-byte boundaries
  static_assert(kThreads % kTileK == 0 && (kThreads % kM == 0 || kM % kThreads == 0) &&
                kThreads % kN == 0);
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

/// Which values of a tile of A a thread fetches: the l-th is [m(l), k(l)].
template <class Shape, bool kAlongK>
struct PlacesA {
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

/// The grid: x, y: tiles of m and n; z: peers × splits. A split takes `share` of k, a multiple of
/// kTileK.
template <class Shape, class Problem>
__global__ void __launch_bounds__(Shape::kThreads)
    tiled_product(Problem problem, int splits, int share) {
  using Real = typename Shape::Real;
  constexpr int kTileM = Shape::kTileM, kTileN = Shape::kTileN, kTileK = Shape::kTileK,
                kOwn = Shape::kOwn;
  alignas(16) __shared__ Real shared_a[kTileK][kTileM + Shape::kPad];
  alignas(16) __shared__ Real shared_b[kTileK][kTileN + Shape::kPad];
  const int thread = static_cast<int>(threadIdx.x), split = static_cast<int>(blockIdx.z) % splits;
  problem.bind(blockIdx.z / static_cast<unsigned>(splits));
  const int m0 = static_cast<int>(blockIdx.x) * kTileM, n0 = static_cast<int>(blockIdx.y) * kTileN;
  const int k_begin = split * share, k_end = min(problem.k, k_begin + share);
  const PlacesA<Shape, Problem::kAlongK> places{thread};
  const int b_n = thread % kTileN, b_k = thread / kTileN;
  constexpr int kStepB = Shape::kThreads / kTileN;
  const bool loads_b = Shape::kAllLoadB || b_k < kTileK;

  // What stays the same from tile to tile: the rows of A that this thread fetches.
  typename Problem::Row rows[Shape::kLoadsA];
#pragma unroll
  for (int l = 0; l < Shape::kLoadsA; ++l) rows[l] = problem.row(m0 + places.m(l));

  Real next_a[Shape::kLoadsA], next_b[Shape::kLoadsB];
  const auto fetch = [&](int k0) {
    if constexpr (Problem::kAlongK) {
      const auto step = problem.step(k0 + places.k(0));
      const bool inside = k0 + places.k(0) < k_end;
#pragma unroll
      for (int l = 0; l < Shape::kLoadsA; ++l)
        next_a[l] = inside ? problem.a(rows[l], step) : Real(0);
    } else {
#pragma unroll
      for (int l = 0; l < Shape::kLoadsA; ++l) {
        const int k = k0 + places.k(l);
        next_a[l] = k < k_end ? problem.a(rows[l], problem.step(k)) : Real(0);
      }
    }
#pragma unroll
    for (int l = 0; l < Shape::kLoadsB; ++l) {
      const int k = k0 + b_k + l * kStepB, n = n0 + b_n;
      next_b[l] = k < k_end && n < problem.n && loads_b ? problem.b(k, n) : Real(0);
    }
  };
  const auto keep = [&] {
#pragma unroll
    for (int l = 0; l < Shape::kLoadsA; ++l) shared_a[places.k(l)][places.m(l)] = next_a[l];
#pragma unroll
    for (int l = 0; l < Shape::kLoadsB; ++l)
      if (loads_b) shared_b[b_k + l * kStepB][b_n] = next_b[l];
  };

  const int own_m = thread / (kTileN / kOwn) * kOwn, own_n = thread % (kTileN / kOwn) * kOwn;
  Real sums[kOwn][kOwn] = {};
  fetch(k_begin);
  keep();
  __syncthreads();
  for (int k0 = k_begin; k0 < k_end; k0 += kTileK) {
    if (k0 + kTileK < k_end) fetch(k0 + kTileK);
#pragma unroll
    for (int k = 0; k < kTileK; ++k) {
      Real a[kOwn], b[kOwn];
      load_four(&shared_a[k][own_m], a);
      load_four(&shared_b[k][own_n], b);
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
#pragma unroll
        for (int j = 0; j < kOwn; ++j) sums[i][j] += a[i] * b[j];
    }
    __syncthreads();
    if (k0 + kTileK < k_end) keep();
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kOwn; ++i)
#pragma unroll
    for (int j = 0; j < kOwn; ++j)
      if (m0 + own_m + i < problem.m && n0 + own_n + j < problem.n)
        problem.store(split, m0 + own_m + i, n0 + own_n + j, sums[i][j]);
}

}  // namespace gossamer::gpu::cuda
