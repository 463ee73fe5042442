// Rows as a few of their values.
#pragma once

#include <span>

#include "gpu/cuda/lane.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

void largest(Lane& lane, std::span<const LargestRequest> requests);
/// Waits for the verdict on the indices.
void add_placed(Lane& lane, std::span<const PlacedRequest> requests);
void sample(Lane& lane, std::span<const SampledRequest> requests);
void add_sampled(Lane& lane, std::span<const SampledRequest> requests);

}  // namespace gossamer::gpu::cuda
