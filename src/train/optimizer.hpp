// Local optimizers: how a gradient changes a row. SGD with momentum, Nesterov's form, weight decay, and its step-size
// schedule.
#pragma once

#include <cstdint>
#include <string>

#include "base/parameter.hpp"

namespace gossamer::train {

/// `[optimizer]`. With v the momentum row (PyTorch's convention):
///   g ← ∇f + weight_decay · x;  v ← momentum · v + g;  x ← x − rate · (nesterov ? g + momentum · v : v)
struct OptimizerOptions {
  double rate = 0.1;           ///< step size γ
  double momentum = 0;         ///< 0 ≤ m < 1
  bool nesterov = false;
  double weight_decay = 0;
  std::string schedule = "constant";  ///< constant | warmup
  std::uint64_t warmup_steps = 0;     ///< warmup: the rate grows linearly from rate/(warmup_steps+1) over these local steps
};
const ParameterSet<OptimizerOptions>& optimizer_parameters();

/// γ of local step `step` (0, 1, …).
double rate_at(const OptimizerOptions& options, std::uint64_t step);

}  // namespace gossamer::train
