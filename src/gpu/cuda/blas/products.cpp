#include "gpu/cuda/blas/products.hpp"

#include "base/check.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// What cuBLAS recommends for Hopper.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

template <class Real>
struct Functions;
template <>
struct Functions<float> {
  static constexpr auto one = &BlasFunctions::single_product;
  static constexpr auto strided = &BlasFunctions::single_strided;
  static constexpr auto batched = &BlasFunctions::single_batched;
};
template <>
struct Functions<double> {
  static constexpr auto one = &BlasFunctions::double_product;
  static constexpr auto strided = &BlasFunctions::double_strided;
  static constexpr auto batched = &BlasFunctions::double_batched;
};

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
  const Real one = 1, zero = 0;
  if (p.a.pointers != nullptr && p.peers > 1) {
    GOSSAMER_CHECK(p.b.pointers != nullptr && p.c.pointers != nullptr,
                   "all operands have pointers or none");
    check((functions_.*Functions<Real>::batched)(
              handle_, operation(p.a), operation(p.b), p.m, p.n, p.k, &one, p.a.pointers,
              p.a.stride, p.b.pointers, p.b.stride, &zero, p.c.pointers, p.c.stride, p.peers),
          "cublasGemmBatched");
  } else if (p.peers > 1) {
    check((functions_.*Functions<Real>::strided)(handle_, operation(p.a), operation(p.b), p.m, p.n,
                                                 p.k, &one, p.a.first, p.a.stride, p.a.distance,
                                                 p.b.first, p.b.stride, p.b.distance, &zero,
                                                 p.c.first, p.c.stride, p.c.distance, p.peers),
          "cublasGemmStridedBatched");
  } else {
    check((functions_.*Functions<Real>::one)(handle_, operation(p.a), operation(p.b), p.m, p.n, p.k,
                                             &one, p.a.first, p.a.stride, p.b.first, p.b.stride,
                                             &zero, p.c.first, p.c.stride),
          "cublasGemm");
  }
}

template void Products::run(const PeerProduct<float>&);
template void Products::run(const PeerProduct<double>&);

}  // namespace gossamer::gpu::cuda
