// Muon's step with a matrix on the CPU. train/optimizer.hpp has the formulas.
#pragma once

#include "gpu/training.hpp"

namespace gossamer::gpu {

/// Thread: any; the work is done by it alone.
template <class Real>
void muon_step(const UpdateRule& rule, const UpdateJob<Real>& job);

}  // namespace gossamer::gpu
