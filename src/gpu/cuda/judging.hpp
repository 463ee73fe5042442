// Looks at rows.
#pragma once

#include <span>

#include "gpu/cuda/lane.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

/// Waits for nothing: words are told when the GPU comes to it.
void check_range(Lane& lane, std::span<const RangeCheckRequest> requests);

}  // namespace gossamer::gpu::cuda
