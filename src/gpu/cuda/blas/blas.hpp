// cuBLAS, loaded at run time: a program built with CUDA also starts on machines without it.
#pragma once

#include <cublas_v2.h>

#include <string>

#include "base/result.hpp"

namespace gossamer::gpu::cuda {

/// The functions of cuBLAS that products use. Valid until the program ends.
struct BlasFunctions {
  std::string library;  ///< its name and version: "libcublas.so.13, 13.0.2"
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSgemm_v2) single_product = nullptr;
  decltype(&cublasDgemm_v2) double_product = nullptr;
  decltype(&cublasSgemmStridedBatched) single_strided = nullptr;
  decltype(&cublasDgemmStridedBatched) double_strided = nullptr;
  decltype(&cublasSgemmBatched) single_batched = nullptr;
  decltype(&cublasDgemmBatched) double_batched = nullptr;
};

/// Errors (invalid): no cuBLAS on the library path, with the names that were tried. Thread: any.
Result<BlasFunctions> load_blas();

}  // namespace gossamer::gpu::cuda
