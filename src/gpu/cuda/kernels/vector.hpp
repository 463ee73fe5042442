// Device code that many kernels share: 16-byte accesses, arithmetic that is rounded step by step,
// and sums of a block.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/cuda/kernels/memory_spaces.hpp"

namespace gossamer::gpu::cuda {

/// The values that one access moves.
template <class Real>
struct alignas(16) Pack {
  static constexpr int kValues = 16 / static_cast<int>(sizeof(Real));
  Real v[kValues];
};

template <class Real>
__device__ __forceinline__ Pack<Real> load_pack(const Real* at) {
  return *reinterpret_cast<const Pack<Real>*>(at);
}

/// `streaming`: the value is not read soon, so it may leave the cache first.
template <class Real>
__device__ __forceinline__ void store_pack(Real* at, const Pack<Real>& pack,
                                           [[maybe_unused]] bool streaming) {
#ifdef __CUDA_ARCH__
  if (streaming) {
    uint4 bits;
    memcpy(&bits, &pack, sizeof bits);
    __stcs(reinterpret_cast<uint4*>(at), bits);
    return;
  }
#endif
  *reinterpret_cast<Pack<Real>*>(at) = pack;
}

inline bool aligned(const void* pointer, std::size_t bytes = 16) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// Products, sums and quotients that are rounded one by one, as on the CPU: the compiler cannot fuse
// them.
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float plus(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float minus(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ double minus(double a, double b) { return __dsub_rn(a, b); }
__device__ __forceinline__ float over(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ double over(double a, double b) { return __ddiv_rn(a, b); }

/// Sets a word of host memory (a FaultWord's) to `tag` if it is 0. If several threads do so at
/// once, any of them wins.
__device__ __forceinline__ void report_fault(volatile std::uint64_t* word, std::uint64_t tag) {
  if (*word == 0) *word = tag;
}

/// Σ of one value per thread, added as a tree: the order depends on kThreads alone. Thread 0 gets
/// the sum. All threads of a block of kThreads call it; `shared` is shared memory of kThreads
/// values, free again on return.
template <int kThreads, class Value>
__device__ __forceinline__ Value block_sum(Value value, Value* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] += shared[thread + half];
    __syncthreads();
  }
  const Value sum = shared[0];
  __syncthreads();
  return sum;
}

}  // namespace gossamer::gpu::cuda
