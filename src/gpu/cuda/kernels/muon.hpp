// Muon's step with a matrix on a GPU. train/optimizer.hpp has the formulas.
#pragma once

#include <span>

#include "gpu/cuda/stream_context.hpp"
#include "gpu/training.hpp"

namespace gossamer::gpu::cuda {

/// Enqueues one step for each job, one after the other, and does not wait.
template <class Real>
void muon(StreamContext& context, const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs);

}  // namespace gossamer::gpu::cuda
