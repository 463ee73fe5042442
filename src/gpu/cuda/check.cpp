#include "gpu/cuda/check.hpp"

#include <fmt/format.h>

#include <new>
#include <stdexcept>

namespace gossamer::gpu::cuda {
namespace {

const char* text_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED: return "cuBLAS could not be started";
    case CUBLAS_STATUS_INVALID_VALUE: return "invalid argument";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "not for this GPU";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the product failed on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "not supported";
    default: return "internal error";
  }
}

}  // namespace

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears the error, which later calls would report again
  if (error == cudaErrorMemoryAllocation) throw std::bad_alloc();
  throw std::runtime_error(
      fmt::format("{}: {} ({})", call, cudaGetErrorString(error), cudaGetErrorName(error)));
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw std::bad_alloc();
  throw std::runtime_error(
      fmt::format("{}: {} (status {})", call, text_of(status), static_cast<int>(status)));
}

}  // namespace gossamer::gpu::cuda
