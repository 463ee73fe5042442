// Looks at rows, on the CPU. gpu/device.hpp tells which.
#pragma once

#include "gpu/device.hpp"

namespace gossamer::gpu {

void check_range(const RangeCheckRequest& request);

}  // namespace gossamer::gpu
