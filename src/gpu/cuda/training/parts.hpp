// Passes of parts of networks (gpu/training.hpp, PartJob), kernel by kernel.
#pragma once

#include <span>

#include "gpu/cuda/stream_context.hpp"
#include "gpu/training.hpp"

namespace gossamer::gpu::cuda {

/// Enqueues the jobs on the context's stream, one after the other, and does not wait. `task` has
/// one table of samples, of this GPU. A microbatch's gradient is added to that of the microbatches
/// before it. Throws std::bad_alloc.
template <class Real>
void train_part(StreamContext& context, const Task& task, PartPass pass,
                std::span<const PartJob<Real>> jobs);

}  // namespace gossamer::gpu::cuda
