#include "cublas_v2.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "memory.hpp"
#include "streams.hpp"

using namespace gossamer::emulation;

struct cublasContext {
  int gpu = 0;
  cudaStream_t stream = nullptr;
  bool has_workspace = false;  ///< otherwise cuBLAS allocates memory for a product
};

namespace {

template <class Real>
struct Shape {
  bool a_transposed, b_transposed;
  int m, n, k;
  Real alpha, beta;
  int a_stride, b_stride, c_stride;
  cublasComputeType_t compute;

  bool valid() const {
    return m >= 0 && n >= 0 && k >= 0 && a_stride >= std::max(1, a_transposed ? k : m) &&
           b_stride >= std::max(1, b_transposed ? n : k) && c_stride >= std::max(1, m);
  }
};

/// The factor as a GPU multiplies it: with fewer bits of the mantissa.
template <class Real>
Real rounded(Real factor, cublasComputeType_t compute) {
  if constexpr (std::is_same_v<Real, float>) {
    const int dropped = compute == CUBLAS_COMPUTE_32F_FAST_TF32   ? 13
                        : compute == CUBLAS_COMPUTE_32F_FAST_16BF ? 16
                                                                  : 0;
    if (dropped == 0 || !std::isfinite(factor)) return factor;
    const std::uint32_t half = std::uint32_t{1} << (dropped - 1);
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(factor) + half;
    return std::bit_cast<float>(bits >> dropped << dropped);
  } else {
    return factor;
  }
}

/// C ← alpha op(A) op(B) + beta C; with beta = 0, C is not read. Sums in ascending k, in Real.
template <class Real>
void product(const Shape<Real>& s, const Real* a, const Real* b, Real* c) {
  const auto at = [](int row, int column, int stride) {
    return static_cast<std::size_t>(row) +
           static_cast<std::size_t>(column) * static_cast<std::size_t>(stride);
  };
  std::vector<Real> sum(static_cast<std::size_t>(s.m));
  for (int j = 0; j < s.n; ++j) {
    std::fill(sum.begin(), sum.end(), Real(0));
    for (int l = 0; l < s.k; ++l) {
      const Real factor =
          rounded(b[s.b_transposed ? at(j, l, s.b_stride) : at(l, j, s.b_stride)], s.compute);
      const Real* column = a + (s.a_transposed ? at(l, 0, s.a_stride) : at(0, l, s.a_stride));
      const std::size_t step = s.a_transposed ? static_cast<std::size_t>(s.a_stride) : 1;
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += rounded(column[i * step], s.compute) * factor;
    }
    for (int i = 0; i < s.m; ++i) {
      Real& out = c[at(i, j, s.c_stride)];
      out = s.alpha * sum[static_cast<std::size_t>(i)] + (s.beta == 0 ? Real(0) : s.beta * out);
    }
  }
}

/// The bytes of a matrix of `rows` × `columns` values whose columns begin `stride` values apart.
template <class Real>
std::size_t bytes_of(int rows, int columns, int stride) {
  if (rows == 0 || columns == 0) return 0;
  return (static_cast<std::size_t>(columns - 1) * static_cast<std::size_t>(stride) +
          static_cast<std::size_t>(rows)) *
         sizeof(Real);
}

/// Stops the program if a GPU could not read A and B or write C.
template <class Real>
void require_reachable(const Shape<Real>& s, const Real* a, const Real* b, const Real* c) {
  const auto require = [](const Real* matrix, int rows, int columns, int stride) {
    gossamer::emulation::require_reachable(matrix, bytes_of<Real>(rows, columns, stride), "cuBLAS");
  };
  require(a, s.a_transposed ? s.k : s.m, s.a_transposed ? s.m : s.k, s.a_stride);
  require(b, s.b_transposed ? s.n : s.k, s.b_transposed ? s.k : s.n, s.b_stride);
  require(c, s.m, s.n, s.c_stride);
}

/// `operands(i)` gives A, B and C of product i, once the memory is open.
template <class Real, class Operands>
cublasStatus_t ask(cublasHandle_t handle, const Shape<Real>& shape, int batch, Operands operands) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!shape.valid() || batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
  const int gpu = engine().gpu_of(handle->stream);
  if (handle->gpu != current_gpu() || handle->gpu != gpu) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!handle->has_workspace && engine().captures(handle->stream))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const cudaError_t error = engine().ask(handle->stream, {.work = [shape, batch, operands, gpu] {
                                           engine().count(&Counts::products);
                                           const Arena::Open open(reach(gpu));
                                           for (int i = 0; i < batch; ++i) {
                                             const auto [a, b, c] =
                                                 operands(static_cast<std::size_t>(i));
                                             require_reachable<Real>(shape, a, b, c);
                                             product<Real>(shape, a, b, c);
                                           }
                                         }});
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <class Real>
struct Operands {
  const Real *a, *b;
  Real* c;
};

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (engine().begin("cublasCreate") != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasContext{.gpu = current_gpu()};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = 130000;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (!engine().knows(stream)) return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream = stream;
  handle->has_workspace = false;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;  // cuBLAS's manual
  const bool good = bytes == 0 || (arena().holds(workspace, bytes) &&
                                   reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0);
  handle->has_workspace = good && bytes > 0;
  return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "<unknown>";
}
const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

namespace {

/// What products of one call have in common.
struct Call {
  cublasHandle_t handle;
  cublasOperation_t a_operation, b_operation;
  int m, n, k;
  const void *alpha, *beta;
  int a_stride, b_stride, c_stride, batch;
  cublasComputeType_t compute;
};

template <class Real>
cublasStatus_t ask_in(const Call& call, auto operands) {
  const Shape<Real> shape{call.a_operation != CUBLAS_OP_N,
                          call.b_operation != CUBLAS_OP_N,
                          call.m,
                          call.n,
                          call.k,
                          *static_cast<const Real*>(call.alpha),
                          *static_cast<const Real*>(call.beta),
                          call.a_stride,
                          call.b_stride,
                          call.c_stride,
                          call.compute};
  return ask(call.handle, shape, call.batch, [operands](std::size_t i) {
    const auto [a, b, c] = operands(i, sizeof(Real));
    return Operands<Real>{static_cast<const Real*>(a), static_cast<const Real*>(b),
                          static_cast<Real*>(c)};
  });
}

/// `operands(i, bytes)` gives A, B and C of product i. `bytes`: of a value.
cublasStatus_t ask_with_types(const Call& call, std::array<cudaDataType, 3> types, auto operands) {
  const bool alike = types[0] == types[1] && types[1] == types[2];
  const bool single = call.compute != CUBLAS_COMPUTE_64F;
  if (!alike || types[0] != (single ? CUDA_R_32F : CUDA_R_64F)) return CUBLAS_STATUS_NOT_SUPPORTED;
  return single ? ask_in<float>(call, operands) : ask_in<double>(call, operands);
}

struct Matrices {
  const void *a, *b;
  void* c;
};

}  // namespace

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_operation,
                            cublasOperation_t b_operation, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int a_stride, const void* b,
                            cudaDataType b_type, int b_stride, const void* beta, void* c,
                            cudaDataType c_type, int c_stride, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  return ask_with_types({handle, a_operation, b_operation, m, n, k, alpha, beta, a_stride, b_stride,
                         c_stride, 1, compute},
                        {a_type, b_type, c_type},
                        [=](std::size_t, std::size_t) { return Matrices{a, b, c}; });
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_operation,
                                          cublasOperation_t b_operation, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType a_type,
                                          int a_stride, long long a_distance, const void* b,
                                          cudaDataType b_type, int b_stride, long long b_distance,
                                          const void* beta, void* c, cudaDataType c_type,
                                          int c_stride, long long c_distance, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  return ask_with_types({handle, a_operation, b_operation, m, n, k, alpha, beta, a_stride, b_stride,
                         c_stride, batch, compute},
                        {a_type, b_type, c_type}, [=](std::size_t i, std::size_t bytes) {
                          const auto step =
                              static_cast<long long>(i) * static_cast<long long>(bytes);
                          return Matrices{static_cast<const char*>(a) + step * a_distance,
                                          static_cast<const char*>(b) + step * b_distance,
                                          static_cast<char*>(c) + step * c_distance};
                        });
}

namespace {

/// cuBLAS reads whole vectors if factors may be rounded, and does not see the addresses in lists.
void require_vectors(const void* matrix) {
  if (reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0) return;
  std::fprintf(stderr, "cuBLAS: a matrix in a list is not at a multiple of 16 bytes\n");
  std::abort();
}

}  // namespace

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t a_operation,
                                   cublasOperation_t b_operation, int m, int n, int k,
                                   const void* alpha, const void* const a[], cudaDataType a_type,
                                   int a_stride, const void* const b[], cudaDataType b_type,
                                   int b_stride, const void* beta, void* const c[],
                                   cudaDataType c_type, int c_stride, int batch,
                                   cublasComputeType_t compute, cublasGemmAlgo_t) {
  return ask_with_types(
      {handle, a_operation, b_operation, m, n, k, alpha, beta, a_stride, b_stride, c_stride, batch,
       compute},
      {a_type, b_type, c_type}, [=](std::size_t i, std::size_t) {
        for (const void* list : {static_cast<const void*>(a + i), static_cast<const void*>(b + i),
                                 static_cast<const void*>(c + i)})
          require_reachable(list, sizeof(void*), "cuBLAS");
        if (compute == CUBLAS_COMPUTE_32F_FAST_TF32 || compute == CUBLAS_COMPUTE_32F_FAST_16BF)
          for (const void* matrix : {a[i], b[i], static_cast<const void*>(c[i])})
            require_vectors(matrix);
        return Matrices{a[i], b[i], c[i]};
      });
}
