// Where a pointer points, for the compiler.
#pragma once

#include <cuda_runtime.h>

namespace gossamer::gpu::cuda {

/// Tells the compiler that `at` is in the GPU's memory, not shared among a block: accesses to it
/// need not find that out.
template <class Type>
__host__ __device__ __forceinline__ Type* in_global(Type* at) {
#ifdef __CUDA_ARCH__
  __builtin_assume(__isGlobal(at));
#endif
  return at;
}

}  // namespace gossamer::gpu::cuda
