// Arithmetic on rows on the CPU, one request at a time, on the calling thread. gpu/row_requests.hpp
// has the formulas; mixing takes all requests of a call together (cpu/mix.hpp).
#pragma once

#include "gpu/row_requests.hpp"

namespace gossamer::gpu {

template <class Real>
void run(const AxpyRequest<Real>& request);
template <class Real>
void run(const DifferenceRequest<Real>& request);
template <class Real>
void run(const ScaleRequest<Real>& request);
template <class Real>
void run(const DivideRequest<Real>& request);
template <class Real>
void run(const CopyRequest<Real>& request);
template <class Real>
void run(const FillRequest<Real>& request);
template <class Real>
void run(const SketchRequest<Real>& request);
void run(const RangeCheckRequest& request);

// Requests that read many rows are divided into parts, which may run on several threads: pairs of
// rows, and tiles of values.
template <class Real>
std::size_t parts(const DistancesRequest<Real>& request);
template <class Real>
std::size_t parts(const OrderStatisticsRequest<Real>& request);
/// Parts first … last − 1.
template <class Real>
void run_parts(const DistancesRequest<Real>& request, std::size_t first, std::size_t last);
template <class Real>
void run_parts(const OrderStatisticsRequest<Real>& request, std::size_t first, std::size_t last);

}  // namespace gossamer::gpu
