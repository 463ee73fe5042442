// Matrix products of all peers of a batch, by cuBLAS. Matrices are column-major, as cuBLAS
// expects: a row-major matrix is passed as its transpose.
#pragma once

#include <cstddef>

#include "gpu/cuda/blas/blas.hpp"
#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

/// One operand of all peers: peer p's matrix lies at pointers[p] or, if the distances are equal, at
/// first + p · distance.
template <class Real>
struct Operand {
  Real* first = nullptr;
  std::ptrdiff_t distance = 0;      ///< values
  Real* const* pointers = nullptr;  ///< device memory, [peers]; null: first and distance are used
  int stride = 0;                   ///< of a column
  bool transposed = false;
};

/// C_p = op(A_p) op(B_p), C [m, n], op(A) [m, k], op(B) [k, n], for p < peers. Either all three
/// operands have pointers or none.
template <class Real>
struct PeerProduct {
  int m = 0, n = 0, k = 0;
  Operand<Real> a, b, c;
  int peers = 1;
  bool aligned = true;  ///< the addresses that pointers lead to are multiples of 16 bytes
};

/// A cuBLAS handle with its own workspace, on one stream: its products may be captured in graphs.
/// Thread: one.
class Products {
 public:
  Products(const BlasFunctions& functions, cudaStream_t stream);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  template <class Real>
  void run(const PeerProduct<Real>& product);

 private:
  const BlasFunctions& functions_;
  cublasHandle_t handle_ = nullptr;
  DeviceBuffer workspace_;
};

}  // namespace gossamer::gpu::cuda
