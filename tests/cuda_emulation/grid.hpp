// Runs a kernel's grid: block after block, the threads of a block one after the other between
// barriers.
#pragma once

#include <cstdint>
#include <functional>

#include "control.hpp"
#include "device_words.hpp"

namespace gossamer::emulation {

/// One grid at a time in the whole process; the caller ensures it.
void run_grid(dim3 grid, dim3 block, const std::function<void()>& kernel, Order order,
              std::uint64_t seed);

}  // namespace gossamer::emulation
