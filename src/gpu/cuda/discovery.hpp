// Checks of a discovery's GPUs.
#pragma once

#include "gpu/cuda/cuda.hpp"

namespace gossamer::gpu::cuda {

/// Whether GPU `gpu` (CUDA's number) can be used. Errors (invalid): why it cannot.
Status check_gpu(const Discovery& discovery, int gpu);
/// Whether each of the GPUs can access the memory of all others. Errors (invalid): which cannot.
Status check_peer_access(const std::vector<GpuInfo>& gpus);

}  // namespace gossamer::gpu::cuda
