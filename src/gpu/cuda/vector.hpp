// Device code that many kernels share: 16-byte accesses, arithmetic that is rounded step by step,
// sums of a block.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/cuda/global.hpp"

namespace gossamer::gpu::cuda {

/// As many values as one access moves.
template <class Real>
struct alignas(16) Pack {
  static constexpr int kValues = 16 / static_cast<int>(sizeof(Real));
  Real v[kValues];
};

template <class Real>
__device__ __forceinline__ Pack<Real> load_pack(const Real* at) {
  return *reinterpret_cast<const Pack<Real>*>(at);
}

/// `streaming`: nobody reads it soon, so it is the first to leave the cache.
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

// Products, sums and quotients of their own rounding, as the CPU has them: no fused multiply-add
// whatever the compiler's mind.
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float plus(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float minus(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ double minus(double a, double b) { return __dsub_rn(a, b); }
__device__ __forceinline__ float over(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ double over(double a, double b) { return __ddiv_rn(a, b); }

/// Sets a word of the host's memory (a FaultWord's) where it is 0. Of threads that do so at once,
/// any.
__device__ __forceinline__ void tell(volatile std::uint64_t* word, std::uint64_t tag) {
  if (*word == 0) *word = tag;
}

/// Σ of one value per thread, to thread 0 (others get parts of it), added as a tree: the order
/// depends on kThreads alone. All threads of a block of kThreads call it; `room` is shared memory
/// of kThreads values, free again when it returns.
template <int kThreads, class Value>
__device__ __forceinline__ Value block_sum(Value value, Value* room) {
  const int thread = static_cast<int>(threadIdx.x);
  room[thread] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) room[thread] += room[thread + half];
    __syncthreads();
  }
  const Value sum = room[0];
  __syncthreads();
  return sum;
}

}  // namespace gossamer::gpu::cuda
