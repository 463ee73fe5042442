// GPUs as people write them.
#pragma once

#include <span>
#include <string>

namespace gossamer::gpu {

/// Ascending numbers: "cuda:2", "cuda:0-3", "cuda:0,2,3".
std::string gpu_names(std::span<const int> gpus);

}  // namespace gossamer::gpu
