#include "cublas_v2.h"

#include <algorithm>
#include <vector>

#include "memory.hpp"
#include "streams.hpp"

using namespace gossamer::emulation;

struct cublasContext {
  int gpu = 0;
  cudaStream_t stream = nullptr;
};

namespace {

template <class Real>
struct Shape {
  bool a_transposed, b_transposed;
  int m, n, k;
  Real alpha, beta;
  int a_stride, b_stride, c_stride;

  bool valid() const {
    return m >= 0 && n >= 0 && k >= 0 && a_stride >= std::max(1, a_transposed ? k : m) &&
           b_stride >= std::max(1, b_transposed ? n : k) && c_stride >= std::max(1, m);
  }
};

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
      const Real factor = b[s.b_transposed ? at(j, l, s.b_stride) : at(l, j, s.b_stride)];
      const Real* column = a + (s.a_transposed ? at(l, 0, s.a_stride) : at(0, l, s.a_stride));
      const std::size_t step = s.a_transposed ? static_cast<std::size_t>(s.a_stride) : 1;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += column[i * step] * factor;
    }
    for (int i = 0; i < s.m; ++i) {
      Real& out = c[at(i, j, s.c_stride)];
      out = s.alpha * sum[static_cast<std::size_t>(i)] + (s.beta == 0 ? Real(0) : s.beta * out);
    }
  }
}

/// `operands(i)` gives A, B and C of product i, once the memory is open.
template <class Real, class Operands>
cublasStatus_t ask(cublasHandle_t handle, const Shape<Real>& shape, int batch, Operands operands) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!shape.valid() || batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
  const int gpu = engine().gpu_of(handle->stream);
  if (handle->gpu != current_gpu() || handle->gpu != gpu) return CUBLAS_STATUS_EXECUTION_FAILED;
  const cudaError_t error = engine().ask(handle->stream, {.work = [shape, batch, operands, gpu] {
                                           engine().count(&Counts::products);
                                           const Arena::Open open(reach(gpu));
                                           for (int i = 0; i < batch; ++i) {
                                             const auto [a, b, c] =
                                                 operands(static_cast<std::size_t>(i));
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
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, std::size_t bytes) {
  const bool good = bytes == 0 || arena().holds(workspace, bytes);
  return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) {
  return CUBLAS_STATUS_SUCCESS;
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

#define GOSSAMER_PRODUCTS(Letter, Real)                                                            \
  cublasStatus_t cublas##Letter##gemm_v2(                                                          \
      cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,  \
      int n, int k, const Real* alpha, const Real* a, int a_stride, const Real* b, int b_stride,   \
      const Real* beta, Real* c, int c_stride) {                                                   \
    const Shape<Real> shape{a_operation != CUBLAS_OP_N,                                            \
                            b_operation != CUBLAS_OP_N,                                            \
                            m,                                                                     \
                            n,                                                                     \
                            k,                                                                     \
                            *alpha,                                                                \
                            *beta,                                                                 \
                            a_stride,                                                              \
                            b_stride,                                                              \
                            c_stride};                                                             \
    return ask(handle, shape, 1, [=](std::size_t) { return Operands<Real>{a, b, c}; });            \
  }                                                                                                \
  cublasStatus_t cublas##Letter##gemmStridedBatched(                                               \
      cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,  \
      int n, int k, const Real* alpha, const Real* a, int a_stride, long long a_distance,          \
      const Real* b, int b_stride, long long b_distance, const Real* beta, Real* c, int c_stride,  \
      long long c_distance, int batch) {                                                           \
    const Shape<Real> shape{a_operation != CUBLAS_OP_N,                                            \
                            b_operation != CUBLAS_OP_N,                                            \
                            m,                                                                     \
                            n,                                                                     \
                            k,                                                                     \
                            *alpha,                                                                \
                            *beta,                                                                 \
                            a_stride,                                                              \
                            b_stride,                                                              \
                            c_stride};                                                             \
    return ask(handle, shape, batch, [=](std::size_t i) {                                          \
      const auto place = static_cast<long long>(i);                                                \
      return Operands<Real>{a + place * a_distance, b + place * b_distance,                        \
                            c + place * c_distance};                                               \
    });                                                                                            \
  }                                                                                                \
  cublasStatus_t cublas##Letter##gemmBatched(                                                      \
      cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,  \
      int n, int k, const Real* alpha, const Real* const a[], int a_stride, const Real* const b[], \
      int b_stride, const Real* beta, Real* const c[], int c_stride, int batch) {                  \
    const Shape<Real> shape{a_operation != CUBLAS_OP_N,                                            \
                            b_operation != CUBLAS_OP_N,                                            \
                            m,                                                                     \
                            n,                                                                     \
                            k,                                                                     \
                            *alpha,                                                                \
                            *beta,                                                                 \
                            a_stride,                                                              \
                            b_stride,                                                              \
                            c_stride};                                                             \
    return ask(handle, shape, batch,                                                               \
               [=](std::size_t i) { return Operands<Real>{a[i], b[i], c[i]}; });                   \
  }
GOSSAMER_PRODUCTS(S, float)
GOSSAMER_PRODUCTS(D, double)
