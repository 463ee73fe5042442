// Arithmetic on rows on a GPU (gpu/row_requests.hpp). Each call enqueues its kernels for all
// requests and does not wait, except that sketches and distances are complete on return.
#pragma once

#include <span>

#include "gpu/cuda/stream_context.hpp"
#include "gpu/row_requests.hpp"
#include "gpu/training.hpp"

namespace gossamer::gpu::cuda {

template <class Real>
void enqueue(StreamContext& context, std::span<const BasicMixRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const AxpyRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const DifferenceRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const ScaleRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const DivideRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const CopyRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const FillRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const DistancesRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const OrderStatisticsRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const SketchRequest<Real>> requests);
void enqueue(StreamContext& context, std::span<const RangeCheckRequest> requests);
template <class Real>
void update(StreamContext& context, const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs);

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
      nullptr;  ///< device memory with the operation's factors; null: they are in `factors`
  Factors<Real> factors = {};
  bool vectors = false;  ///< all rows begin at 16-byte boundaries
  std::size_t length = 0;
};

/// One optimizer step of a row; the caller sets the factors.
template <class Real>
RowTask<Real> update_task(const UpdateRule& rule, Real* parameters, const StateRows<Real>& state,
                          const Real* gradient, std::size_t length);
/// Launches the step for `tasks` [count] in device memory, none longer than `longest`. May be
/// captured in a graph.
template <class Real>
void launch_update(cudaStream_t stream, const UpdateRule& rule, const RowTask<Real>* tasks,
                   std::size_t count, std::size_t longest);

}  // namespace gossamer::gpu::cuda
