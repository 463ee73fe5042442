// Mixing many rows at once: the plan of blocks.
#pragma once

#include "gpu/cpu/thread_pool.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu {

/// All requests of a call. Where rows are long they are cut into blocks, and block b of every row
/// is mixed before block b + 1 of any, so that a row that several neighbours read comes from memory
/// once.
template <class Real>
void mix_all(std::span<const BasicMixRequest<Real>> requests, ThreadPool& pool);

}  // namespace gossamer::gpu
