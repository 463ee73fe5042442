// A run in the terms of theory/: quadratic functions with full gradients, and an algorithm that is
// a linear iteration.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "peer/setup/setup.hpp"
#include "theory/quadratic.hpp"

namespace gossamer::peer {

/// The run of `setup`, to be predicted at `rounds`; `setup` outlives the result. The error is a
/// sentence that says why theory has no curve for the run.
Result<theory::QuadraticRun> quadratic_run(const Setup& setup, std::vector<gossip::Round> rounds);

}  // namespace gossamer::peer
