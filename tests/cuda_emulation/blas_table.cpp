// Returns the emulated cuBLAS in place of the real one.
#include "control.hpp"
#include "gpu/cuda/blas/blas.hpp"

namespace gossamer::gpu::cuda {

Result<BlasFunctions> load_blas() {
  if (!emulation::settings().blas_installed)
    return Error{ErrorKind::invalid, "no cuBLAS (a setting of the emulation)"};
  return BlasFunctions{"emulated cuBLAS",          cublasCreate_v2,       cublasDestroy_v2,
                       cublasSetStream_v2,         cublasSetWorkspace_v2, cublasGemmEx,
                       cublasGemmStridedBatchedEx, cublasGemmBatchedEx};
}

}  // namespace gossamer::gpu::cuda
