// CUDA's and cuBLAS's errors, in words.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace gossamer::gpu::cuda {

/// Throws std::bad_alloc when memory was short, std::runtime_error ("cudaLaunchKernel: invalid
/// argument (cudaErrorInvalidValue)") for any other error. `call` names what was called.
void check(cudaError_t error, const char* call);
void check(cublasStatus_t status, const char* call);

}  // namespace gossamer::gpu::cuda

/// The call, checked and named.
#define GOSSAMER_CUDA(function, ...) ::gossamer::gpu::cuda::check(function(__VA_ARGS__), #function)
