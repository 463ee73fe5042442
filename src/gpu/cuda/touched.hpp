// What a request touches, for a device of several GPUs: visit(address) for the row whose GPU
// serves the request (what it writes, where it writes), and then for every other one. Addresses may
// be null.
#pragma once

#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

template <class Real, class Visit>
void touched(const BasicMixRequest<Real>& request, Visit visit) {
  visit(request.out);
  visit(request.x);
  for (const BasicMixSource<Real>& source : request.sources) visit(source.row);
}
template <class Real, class Visit>
void touched(const AxpyRequest<Real>& request, Visit visit) {
  visit(request.y);
  visit(request.x);
}
template <class Real, class Visit>
void touched(const DifferenceRequest<Real>& request, Visit visit) {
  visit(request.out);
  visit(request.a);
  visit(request.b);
}
template <class Real, class Visit>
void touched(const ScaleRequest<Real>& request, Visit visit) {
  visit(request.y);
}
template <class Real, class Visit>
void touched(const DivideRequest<Real>& request, Visit visit) {
  visit(request.out);
  visit(request.x);
  visit(request.divisor);
}
template <class Real, class Visit>
void touched(const CopyRequest<Real>& request, Visit visit) {
  visit(request.to);
  visit(request.from);
}
template <class Real, class Visit>
void touched(const FillRequest<Real>& request, Visit visit) {
  visit(request.y);
}
template <class Real, class Visit>
void touched(const ReduceRequest<Real>& request, Visit visit) {
  visit(request.a);
  visit(request.b);
}
template <class Real, class Visit>
void touched(const SketchRequest<Real>& request, Visit visit) {
  visit(request.row);
}
template <class Visit>
void touched(const Bf16Request& request, Visit visit) {
  visit(request.values);
  visit(request.coded);
}
template <class Visit>
void touched(const Int8Request& request, Visit visit) {
  visit(request.values);
  visit(request.coded);
  visit(request.scales);
}
template <class Visit>
void touched(const SignRequest& request, Visit visit) {
  visit(request.values);
  visit(request.bits);
  visit(request.scales);
}
template <class Visit>
void touched(const LargestRequest& request, Visit visit) {
  visit(request.chosen);
  visit(request.indices);
  visit(request.values);
}
template <class Visit>
void touched(const PlacedRequest& request, Visit visit) {
  visit(request.values);
  visit(request.chosen);
  visit(request.indices);
}
template <class Visit>
void touched(const SampledRequest& request, Visit visit) {
  visit(request.values);
  visit(request.chosen);
}
template <class Visit>
void touched(const RangeCheckRequest& request, Visit visit) {
  visit(request.row);
}
template <class Value, class Visit>
void touched(const RandomRequest<Value>& request, Visit visit) {
  visit(request.out);
}
template <class Real, class Visit>
void touched(const UpdateJob<Real>& job, Visit visit) {
  visit(job.parameters);
  for (const Real* state : job.state) visit(state);
  visit(job.gradient);
}
template <class Real, class Visit>
void touched(const Job<Real>& job, Visit visit) {
  visit(job.parameters);
  for (const Real* state : job.state) visit(state);
  visit(job.gradient);
  visit(job.loss);
  visit(job.hits);
}

/// Whether all that a request touches must be on one GPU: what is captured in a graph cannot wait
/// for other GPUs.
template <class Request>
inline constexpr bool kStaysAtHome = false;
template <class Real>
inline constexpr bool kStaysAtHome<Job<Real>> = true;

}  // namespace gossamer::gpu::cuda
