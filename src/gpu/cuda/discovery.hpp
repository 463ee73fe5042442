// The discovery as the device itself needs it.
#pragma once

#include "gpu/cuda/cuda.hpp"

namespace gossamer::gpu::cuda {

/// Whether `GPU` can be used (invalid: the reason in words).
Status check_gpu(const Discovery& discovery, int gpu);
/// Whether each of the GPUs reaches the memory of all others (invalid: which do not).
Status check_reach(const std::vector<GpuInfo>& gpus);

}  // namespace gossamer::gpu::cuda
