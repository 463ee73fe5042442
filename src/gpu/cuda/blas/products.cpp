#include "gpu/cuda/blas/products.hpp"

#include <type_traits>

#include "base/check.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// What cuBLAS recommends for Hopper.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

template <class Real>
constexpr cudaDataType kType = std::is_same_v<Real, float> ? CUDA_R_32F : CUDA_R_64F;

template <class Real>
cublasComputeType_t compute_type(MatmulPrecision precision) {
  if constexpr (std::is_same_v<Real, double>) return CUBLAS_COMPUTE_64F;
  switch (precision) {
    case MatmulPrecision::float32: break;
    case MatmulPrecision::tf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case MatmulPrecision::bf16: return CUBLAS_COMPUTE_32F_FAST_16BF;
  }
  return CUBLAS_COMPUTE_32F;
}

/// Pointers to matrices, as cuBLAS takes them.
const void* const* inputs(const auto* const* pointers) {
  return reinterpret_cast<const void* const*>(pointers);
}
void* const* outputs(auto* const* pointers) { return reinterpret_cast<void* const*>(pointers); }

}  // namespace

Products::Products(const BlasFunctions& functions, cudaStream_t stream)
    : functions_(functions), workspace_(kWorkspaceBytes) {
  check(functions_.create(&handle_), "cublasCreate");
  check(functions_.set_stream(handle_, stream),
        "cublasSetStream");  // before the workspace, which it resets
  check(functions_.set_workspace(handle_, workspace_.data(), workspace_.bytes()),
        "cublasSetWorkspace");
}

Products::~Products() {
  if (handle_ != nullptr) static_cast<void>(functions_.destroy(handle_));
}

template <class Real>
void Products::run(const PeerProduct<Real>& p) {
  const auto operation = [](const Operand<Real>& operand) {
    return operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  constexpr cudaDataType type = kType<Real>;
  const cublasComputeType_t compute = compute_type<Real>(functions_.precision);
  const Real one = 1, zero = 0;
  if (p.a.pointers != nullptr && p.peers > 1) {
    GOSSAMER_CHECK(p.b.pointers != nullptr && p.c.pointers != nullptr,
                   "all operands have pointers or none");
    // Products with rounded factors read whole vectors, and cuBLAS does not see the addresses.
    check(functions_.batched(handle_, operation(p.a), operation(p.b), p.m, p.n, p.k, &one,
                             inputs(p.a.pointers), type, p.a.stride, inputs(p.b.pointers), type,
                             p.b.stride, &zero, outputs(p.c.pointers), type, p.c.stride, p.peers,
                             p.aligned ? compute : compute_type<Real>(MatmulPrecision::float32),
                             CUBLAS_GEMM_DEFAULT),
          "cublasGemmBatchedEx");
  } else if (p.peers > 1) {
    check(functions_.strided(handle_, operation(p.a), operation(p.b), p.m, p.n, p.k, &one,
                             p.a.first, type, p.a.stride, p.a.distance, p.b.first, type, p.b.stride,
                             p.b.distance, &zero, p.c.first, type, p.c.stride, p.c.distance,
                             p.peers, compute, CUBLAS_GEMM_DEFAULT),
          "cublasGemmStridedBatchedEx");
  } else {
    check(functions_.product(handle_, operation(p.a), operation(p.b), p.m, p.n, p.k, &one,
                             p.a.first, type, p.a.stride, p.b.first, type, p.b.stride, &zero,
                             p.c.first, type, p.c.stride, compute, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  }
}

template void Products::run(const PeerProduct<float>&);
template void Products::run(const PeerProduct<double>&);

}  // namespace gossamer::gpu::cuda
