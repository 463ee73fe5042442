// Training of many small models at once: the jobs of a call that have the same shape are one batch,
// and a step of the batch is one captured graph.
#pragma once

#include <span>

#include "gpu/cuda/stream_context.hpp"
#include "gpu/training.hpp"

namespace gossamer::gpu::cuda {

/// Enqueues the jobs on the context's stream and does not wait. `task` has one table of samples, of
/// this GPU. The workspace takes at most `most_bytes`, or as much as one job needs; jobs that do
/// not fit together are run one batch after the other. Throws std::bad_alloc.
template <class Real>
void train(StreamContext& context, const Task& task, Pass pass, std::span<const Job<Real>> jobs,
           std::size_t most_bytes);

}  // namespace gossamer::gpu::cuda
