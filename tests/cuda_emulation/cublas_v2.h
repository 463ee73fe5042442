// The part of cuBLAS that src/gpu/cuda uses, emulated with plain loops: see control.hpp.
// Matrices are column-major, as in cuBLAS.
#pragma once

#include "cuda_runtime.h"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
};
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
using cublasHandle_t = struct cublasContext*;

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDgemm cublasDgemm_v2

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);

#define GOSSAMER_PRODUCTS(Letter, Real)                                                            \
  cublasStatus_t cublas##Letter##gemm_v2(                                                          \
      cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,  \
      int n, int k, const Real* alpha, const Real* a, int a_stride, const Real* b, int b_stride,   \
      const Real* beta, Real* c, int c_stride);                                                    \
  cublasStatus_t cublas##Letter##gemmStridedBatched(                                               \
      cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,  \
      int n, int k, const Real* alpha, const Real* a, int a_stride, long long a_distance,          \
      const Real* b, int b_stride, long long b_distance, const Real* beta, Real* c, int c_stride,  \
      long long c_distance, int batch);                                                            \
  cublasStatus_t cublas##Letter##gemmBatched(                                                      \
      cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,  \
      int n, int k, const Real* alpha, const Real* const a[], int a_stride, const Real* const b[], \
      int b_stride, const Real* beta, Real* const c[], int c_stride, int batch);
GOSSAMER_PRODUCTS(S, float)
GOSSAMER_PRODUCTS(D, double)
#undef GOSSAMER_PRODUCTS
