// A hint to the compiler about a pointer's address space.
#pragma once

#include <cuda_runtime.h>

namespace gossamer::gpu::cuda {

/// Declares that `at` points to global memory, not to a block's shared memory, so that accesses
/// need no check.
template <class Type>
__host__ __device__ __forceinline__ Type* in_global(Type* at) {
#ifdef __CUDA_ARCH__
  __builtin_assume(__isGlobal(at));
#endif
  return at;
}

}  // namespace gossamer::gpu::cuda
