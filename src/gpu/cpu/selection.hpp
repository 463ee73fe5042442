// Rows as a few of their values, on the CPU. gpu/device.hpp tells which.
#pragma once

#include "gpu/device.hpp"

namespace gossamer::gpu {

void largest(const LargestRequest& request);
void add_placed(const PlacedRequest& request);
void sample(const SampledRequest& request);
void add_sampled(const SampledRequest& request);

}  // namespace gossamer::gpu
