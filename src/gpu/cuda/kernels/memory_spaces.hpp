// The two memories that a kernel knows: global memory, and its block's shared memory.
#pragma once

#include <cuda_runtime.h>

/// A variable in the block's shared memory: GOSSAMER_SHARED(float, sums, [kThreads]) declares
/// `float sums[kThreads]`. Its values are undefined until a thread of the block writes them; the
/// emulation of the tests has a macro of its own, which fills them with NaN.
#ifndef GOSSAMER_SHARED
#define GOSSAMER_SHARED(Type, name, ...) __shared__ Type name __VA_ARGS__
#endif

namespace gossamer::gpu::cuda {

/// Declares that `at` points to global memory, not to a block's shared memory, so that accesses
/// need no check. The emulation of the tests, which is compiled by the C++ compiler, stops the
/// program if `at` is memory that no GPU can access.
template <class Type>
__host__ __device__ __forceinline__ Type* in_global(Type* at) {
#if defined(__CUDA_ARCH__) || !defined(__CUDACC__)
  __builtin_assume(__isGlobal(at));
#endif
  return at;
}

}  // namespace gossamer::gpu::cuda
