// A run as theory knows it: quadratic functions, full gradients, and one of the methods that are
// linear iterations.
#pragma once

#include "base/result.hpp"
#include "peer/runtime/setup.hpp"
#include "theory/quadratic.hpp"

namespace gossamer::peer {

/// The run of `setup` at these rounds; `setup` outlives it. The error says in words why theory has
/// no curve for it.
Result<theory::QuadraticRun> quadratic_run(const Setup& setup, std::vector<gossip::Round> rounds);

}  // namespace gossamer::peer
