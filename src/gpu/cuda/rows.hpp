// Arithmetic on rows: one kernel for all requests of a call.
#pragma once

#include <span>

#include "gpu/cuda/lane.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

template <class Real>
void mix(Lane& lane, std::span<const BasicMixRequest<Real>> requests);
template <class Real>
void axpy(Lane& lane, std::span<const AxpyRequest<Real>> requests);
template <class Real>
void add_difference(Lane& lane, std::span<const DifferenceRequest<Real>> requests);
template <class Real>
void scale(Lane& lane, std::span<const ScaleRequest<Real>> requests);
template <class Real>
void divide(Lane& lane, std::span<const DivideRequest<Real>> requests);
template <class Real>
void copy(Lane& lane, std::span<const CopyRequest<Real>> requests);
template <class Real>
void fill(Lane& lane, std::span<const FillRequest<Real>> requests);
template <class Real>
void update(Lane& lane, const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs);

/// The numbers of an element-wise operation: a factor, or an optimizer step's rate and corrections
/// (StepFactors).
template <class Real>
struct Factors {
  Real v[3] = {};
};
template <class Real>
constexpr Factors<Real> factors_of(const StepFactors& step) {
  return {{static_cast<Real>(step.rate), static_cast<Real>(step.correction1),
           static_cast<Real>(step.correction2)}};
}

/// One row of an element-wise operation: out ← f(in, factors).
template <class Real>
struct RowTask {
  const Real* in[4] = {};
  Real* out[3] = {};
  const Real* factors_at =
      nullptr;  ///< where as many as the operation has lie in device memory; null: in `factors`
  Factors<Real> factors = {};
  bool vectors = false;  ///< all rows begin at 16-byte boundaries
  std::size_t length = 0;
};

/// One optimizer step of a row, the factors not yet said.
template <class Real>
RowTask<Real> update_task(const UpdateRule& rule, Real* parameters, const StateRows<Real>& state,
                          const Real* gradient, std::size_t length);
/// `tasks` [count] in device memory, none longer than `longest`. May be captured.
template <class Real>
void launch_update(cudaStream_t stream, const UpdateRule& rule, const RowTask<Real>* tasks,
                   std::size_t count, std::size_t longest);

}  // namespace gossamer::gpu::cuda
