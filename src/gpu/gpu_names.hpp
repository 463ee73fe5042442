// Names of GPUs in text.
#pragma once

#include <span>
#include <string>

namespace gossamer::gpu {

/// Text for ascending CUDA numbers: "cuda:2", "cuda:0-3", "cuda:0,2,3".
std::string gpu_names(std::span<const int> gpus);

}  // namespace gossamer::gpu
