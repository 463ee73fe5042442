// Mixing many rows at once, block by block.
#pragma once

#include "gpu/cpu/thread_pool.hpp"
#include "gpu/row_requests.hpp"

namespace gossamer::gpu {

/// Serves all requests of a call. Long rows are cut into blocks, and block b of every row is mixed
/// before block b + 1 of any row, so that a row that several neighbours read comes from memory
/// once. Thread: any; spreads over the pool.
template <class Real>
void run_all(std::span<const BasicMixRequest<Real>> requests, ThreadPool& pool);

}  // namespace gossamer::gpu
