// Numbers from rows, back on the host.
#pragma once

#include <span>

#include "gpu/cuda/lane.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

// Each waits for its results. The order of every sum depends on the row's length alone.
template <class Real>
void dot(Lane& lane, std::span<ReduceRequest<Real>> requests);
template <class Real>
void squared_distance(Lane& lane, std::span<ReduceRequest<Real>> requests);
template <class Real>
void sketch(Lane& lane, std::span<const SketchRequest<Real>> requests);

}  // namespace gossamer::gpu::cuda
