// The largest stable step of plain SGD under an algorithm, as far as W alone decides it.
#pragma once

#include <optional>
#include <string>

#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// For rates γ with γ L < `largest`, where L is the largest curvature of the peers' losses, errors
/// do not grow on quadratic losses with one Hessian.
struct StableStep {
  double largest = 0;
  double lowest_eigenvalue = 0;  ///< of W
  double largest_if_lazy = 0;    ///< with topology.lazy = true
};

/// None: W varies or is not symmetric or too large, a peer is alone, the optimizer is not plain
/// SGD, the policy is not sync, or the bound of the algorithm is not known
/// (gossip::Algorithm::largest_stable_step).
std::optional<StableStep> stable_step(const Setup& setup);

/// A sentence where topology.lazy = true would allow steps at least 1.5 times as large; else
/// empty.
std::string stable_step_warning(const Setup& setup);

}  // namespace gossamer::peer
