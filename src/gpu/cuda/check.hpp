// Errors of CUDA and cuBLAS as exceptions with readable text.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace gossamer::gpu::cuda {

/// Throws std::bad_alloc if memory is short, std::runtime_error ("cudaLaunchKernel: invalid
/// argument (cudaErrorInvalidValue)") for any other error. `call` is the name of the function that
/// was called.
void check(cudaError_t error, const char* call);
void check(cublasStatus_t status, const char* call);

}  // namespace gossamer::gpu::cuda

/// Calls function(…) and checks its result.
#define GOSSAMER_CUDA(function, ...) ::gossamer::gpu::cuda::check(function(__VA_ARGS__), #function)
