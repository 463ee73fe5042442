// Training of many small models at once: the jobs of a call that are of one size are one batch, and
// a step of it is one graph.
#pragma once

#include <span>

#include "gpu/cuda/lane.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

enum class Work { evaluate, gradient, step };

/// Asks for the jobs' work on the lane's stream, with the task's first table; returns at once. The
/// workspace takes at most `most_bytes`, or what one job needs: jobs that do not fit together are
/// done one batch after the other. Throws std::bad_alloc.
template <class Real>
void train(Lane& lane, const Task& task, std::span<const Job<Real>> jobs, Work work,
           std::size_t most_bytes);

}  // namespace gossamer::gpu::cuda
