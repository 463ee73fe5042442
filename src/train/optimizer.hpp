// Local optimizers: how a gradient changes a row (SGD, Adam, AdamW, Muon), and the step size over
// the local steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "gpu/training.hpp"
#include "train/privacy/options.hpp"

namespace gossamer::train {

/// The keys of `[optimizer]` that every kind has: γ over the local steps s = 0, 1, …. In the first
/// warmup_steps γ grows linearly, γ = rate · (s + 1) / (warmup_steps + 1); after them, PyTorch's
/// formulas, with W = warmup_steps and S the local steps of the whole run:
///   constant  γ = rate
///   step      γ = rate · factor^(number of milestones ≤ s)
///   cosine    γ = final_rate + (rate − final_rate) (1 + cos(π (s − W) / (S − W))) / 2
///             (Loshchilov and Hutter 2017, without restarts)
/// If a peer leaves rounds out, s and S count as if it did not.
struct ScheduleOptions {
  std::string schedule = "constant";  ///< constant | step | cosine
  std::uint64_t warmup_steps = 0;
  std::vector<int> milestones = {};  ///< step
  double factor = 0.1;               ///< step
  double final_rate = 0;             ///< cosine
};
const ParameterSet<ScheduleOptions>& schedule_parameters();

/// An optimizer with its constants, its step size and its schedule. In PyTorch's conventions, with
/// g = ∇f and t = s + 1:
///   sgd    g ← g + weight_decay · x;  v ← momentum · v + g;
///          x ← x − γ (nesterov ? g + momentum · v : v)
///   adam   g ← g + weight_decay · x;  m ← β1 m + (1 − β1) g;  v ← β2 v + (1 − β2) g²;
///          x ← x − γ m̂ / (sqrt(v̂) + ε),  m̂ = m / (1 − β1^t),  v̂ = v / (1 − β2^t)
///          (Kingma and Ba 2015, Alg. 1)
///   adamw  adam, but with the decay beside the gradient:
///          x ← x − γ (m̂ / (sqrt(v̂) + ε) + weight_decay · x)   (Loshchilov and Hutter 2019)
///   muon   with a matrix X [inputs, outputs], the weights of any layer but the last (Jordan 2024):
///          M ← β M + (1 − β) G;  U ← nesterov ? β M + (1 − β) G : M;
///          O ← U / (‖U‖ + ε), and then, `iterations` times, O ← a O + (b O Oᵀ + c (O Oᵀ)²) O;
///          X ← X − γ (sqrt(max(1, outputs / inputs)) O + weight_decay · X);
///          all other tensors with adamw, whose rate is γ · adamw_rate / rate
struct OptimizerOptions {
  double rate = 0.1;
  gpu::UpdateRule rule = {};
  gpu::UpdateRule other_rule = {};  ///< muon: of the tensors that are not such matrices
  double other_rate_factor = 1;     ///< their γ over the matrices'
  ScheduleOptions schedule = {};
  PrivacyOptions privacy = {};  ///< of the gradients
};

/// A value of `optimizer.kind`. A kind is an update rule of the devices, so a new one also needs
/// kernels.
struct OptimizerKind {
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterSpec> parameters;  ///< its own, without the schedule's
};
const std::vector<OptimizerKind>& optimizer_kinds();

/// `own` are values of the kind's parameters, `schedule` those of schedule_parameters(). Errors
/// (invalid): an unknown kind, or a value out of range. Without privacy.
Result<OptimizerOptions> make_optimizer(const std::string& kind, const ParameterValues& own,
                                        const ParameterValues& schedule);

/// γ of local step `step` in a run of `steps` local steps; after the last step γ stays constant.
double rate_at(const OptimizerOptions& options, std::uint64_t step, std::uint64_t steps);

}  // namespace gossamer::train
