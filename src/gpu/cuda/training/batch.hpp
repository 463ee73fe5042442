// The data of a training step's kernels about the peers that are trained together. It lies in
// device memory and does not move while a plan lives, so that a captured graph finds it again.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/rows.hpp"
#include "gpu/program.hpp"

namespace gossamer::gpu::cuda {

/// Addresses of a peer's rows and results.
template <class Real>
struct PeerRows {
  Real* parameters;
  Real* gradient;
  double* loss;
  std::int64_t* hits;  ///< may be null
  std::uint32_t peer;  ///< key of the noise
  Real weight;         ///< of the gradient
};

/// The peers of a batch. Kernels take it by value.
template <class Real>
struct Batch {
  const PeerRows<Real>* rows = nullptr;  ///< [peers]
  Real* workspace = nullptr;
  std::size_t stride = 0;  ///< values from one peer's workspace to the next's
  int peers = 0;
  int samples = 0;  ///< of each peer

  __host__ __device__ Real* at(unsigned peer, std::size_t offset) const {
    return in_global(workspace + peer * stride + offset);
  }
  __device__ __forceinline__ Real* parameters(unsigned peer) const {
    return in_global(in_global(rows)[peer].parameters);
  }
  __device__ __forceinline__ Real* gradient(unsigned peer) const {
    return in_global(in_global(rows)[peer].gradient);
  }
};

/// The inputs of one call: samples and rates of `steps` steps. The GPU counts `step` up from 0.
struct CallInputs {
  const std::uint32_t* samples;      ///< [peers, steps, samples]
  const double* rates;               ///< [peers, steps]
  const std::uint64_t* first_steps;  ///< [peers]
  int steps;
  int step;
};

/// The inputs of the current step, which the gathering kernel takes from the call's.
template <class Real>
struct StepInputs {
  std::int32_t* labels;      ///< [peers, samples]
  float* targets;            ///< [peers, samples]
  Factors<Real>* factors;    ///< [peers], of the optimizer's step
  std::uint64_t* steps;      ///< [peers]
  double* piece_losses;      ///< [peers, pieces of the loss]
  std::int64_t* piece_hits;  ///< likewise
};

/// n / d for 0 ≤ n < 2³¹ by a product (Granlund and Montgomery 1994, fig. 4.1).
class FastDivide {
 public:
  FastDivide() = default;
  explicit FastDivide(int divisor) : divisor_(divisor) {
    while ((std::uint64_t{1} << shift_) < static_cast<std::uint64_t>(divisor)) ++shift_;
    const std::uint64_t d = static_cast<std::uint64_t>(divisor);
    factor_ = static_cast<std::uint32_t>((((std::uint64_t{1} << shift_) - d) << 32) / d + 1);
  }
  __device__ __forceinline__ int quotient(int n) const {
    const auto value = static_cast<unsigned>(n);
    return static_cast<int>((__umulhi(value, factor_) + value) >> shift_);
  }
  /// n ← n / d; returns the remainder.
  __device__ __forceinline__ int split(int& n) const {
    const int whole = quotient(n), rest = n - whole * divisor_;
    n = whole;
    return rest;
  }

 private:
  int divisor_ = 1;
  unsigned shift_ = 0;
  std::uint32_t factor_ = 1;
};

/// tanh(u) with u = √(2/π) (x + 0.044715 x³), of gelu x = ½ x (1 + tanh u).
template <class Real>
__device__ __forceinline__ Real gelu_tanh(Real x) {
  return tanh(Real(0.79788456080286535588) * (x + Real(0.044715) * (x * x * x)));
}
/// gelu′ x = ½ (1 + t) + ½ x (1 − t²) u′ with t = tanh u, u′ = √(2/π) (1 + 0.134145 x²).
template <class Real>
__device__ __forceinline__ Real gelu_slope(Real x) {
  // Beyond ±20 the slope is 0 or 1, and the square of a huge value would be infinite.
  x = x < Real(-20) ? Real(-20) : x;
  x = x > Real(20) ? Real(20) : x;
  const Real t = gelu_tanh(x);
  const Real slope = Real(0.79788456080286535588) * (Real(1) + Real(0.134145) * (x * x));
  return Real(0.5) * (Real(1) + t) + Real(0.5) * x * ((Real(1) - t * t) * slope);
}

/// relu keeps NaN.
template <class Real>
__device__ __forceinline__ Real activated(Activation activation, Real x) {
  if (activation == Activation::relu) return x < Real(0) ? Real(0) : x;
  if (activation == Activation::tanh) return tanh(x);
  if (activation == Activation::gelu) return Real(0.5) * x * (Real(1) + gelu_tanh(x));
  return x;
}
/// dy f′, computed from the output y: relu′ = [y > 0], tanh′ = 1 − y². Not of gelu.
template <class Real>
__device__ __forceinline__ Real activation_gradient(Activation activation, Real y, Real dy) {
  if (activation == Activation::relu) return y > Real(0) ? dy : Real(0);
  if (activation == Activation::tanh) return dy * (Real(1) - y * y);
  return dy;
}

}  // namespace gossamer::gpu::cuda
