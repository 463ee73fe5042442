// cuBLAS, loaded at run time: a program built with CUDA also starts on machines without it.
#pragma once

#include <cublas_v2.h>

#include <string>

#include "base/result.hpp"
#include "gpu/cuda/cuda.hpp"

namespace gossamer::gpu::cuda {

// cublasGemmEx and its kin. (Their names are overloaded in cuBLAS's header.)
using ProductFunction = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                           int m, int n, int k, const void* alpha, const void* a,
                                           cudaDataType a_type, int a_stride, const void* b,
                                           cudaDataType b_type, int b_stride, const void* beta,
                                           void* c, cudaDataType c_type, int c_stride,
                                           cublasComputeType_t, cublasGemmAlgo_t);
using StridedProductFunction = cublasStatus_t (*)(
    cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void* alpha,
    const void* a, cudaDataType a_type, int a_stride, long long a_distance, const void* b,
    cudaDataType b_type, int b_stride, long long b_distance, const void* beta, void* c,
    cudaDataType c_type, int c_stride, long long c_distance, int batch, cublasComputeType_t,
    cublasGemmAlgo_t);
using BatchedProductFunction = cublasStatus_t (*)(
    cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void* alpha,
    const void* const* a, cudaDataType a_type, int a_stride, const void* const* b,
    cudaDataType b_type, int b_stride, const void* beta, void* const* c, cudaDataType c_type,
    int c_stride, int batch, cublasComputeType_t, cublasGemmAlgo_t);

/// The functions of cuBLAS that products use, valid until the program ends, and how they are used.
struct BlasFunctions {
  std::string library;  ///< its name and version: "libcublas.so.13, 13.0.2"
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  ProductFunction product = nullptr;
  StridedProductFunction strided = nullptr;
  BatchedProductFunction batched = nullptr;
  /// Of products of floats. Products of doubles are computed in double.
  MatmulPrecision precision = MatmulPrecision::float32;
};

/// Errors (invalid): no cuBLAS on the library path, with the names that were tried. Thread: any.
Result<BlasFunctions> load_blas();

}  // namespace gossamer::gpu::cuda
