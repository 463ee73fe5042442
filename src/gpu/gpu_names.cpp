#include "gpu/gpu_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gossamer::gpu {

std::string gpu_names(std::span<const int> gpus) {
  const bool run =
      gpus.size() > 1 && gpus.back() - gpus.front() + 1 == static_cast<int>(gpus.size());
  return run ? fmt::format("cuda:{}-{}", gpus.front(), gpus.back())
             : fmt::format("cuda:{}", fmt::join(gpus, ","));
}

}  // namespace gossamer::gpu
