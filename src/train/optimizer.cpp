#include "train/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gossamer::train {
namespace {

using Kind = gpu::UpdateRule::Kind;

struct SgdOptions {
  double rate = 0.1, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
template <bool kDecoupled>
struct AdamOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8,
         weight_decay = kDecoupled ? 0.01 : 0;
};

struct MuonOptions {
  double rate = 0.02, momentum = 0.95, weight_decay = 0;
  bool nesterov = true;
  int iterations = 5;
  double adamw_rate = 3e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-10;
};

const ParameterNotes kRate{
    .help = "step size γ, before the schedule", .minimum = 0, .minimum_excluded = true};

const ParameterSet<SgdOptions>& sgd_parameters() {
  static const auto set =
      ParameterSet<SgdOptions>()
          .add("rate", &SgdOptions::rate, kRate)
          .add("momentum", &SgdOptions::momentum,
               {.help = "v ← momentum · v + g, x ← x − rate · v; below 1",
                .minimum = 0,
                .maximum = 0.999999})
          .add("nesterov", &SgdOptions::nesterov, {.help = "x ← x − rate · (g + momentum · v)"})
          .add("weight_decay", &SgdOptions::weight_decay,
               {.help = "adds weight_decay · x to the gradient", .minimum = 0});
  return set;
}

template <bool kDecoupled>
const ParameterSet<AdamOptions<kDecoupled>>& adam_parameters() {
  using Options = AdamOptions<kDecoupled>;
  static const auto set =
      ParameterSet<Options>()
          .add("rate", &Options::rate, kRate)
          .add("beta1", &Options::beta1,
               {.help = "m ← beta1 · m + (1 − beta1) · g; below 1",
                .minimum = 0,
                .maximum = 0.999999})
          .add("beta2", &Options::beta2,
               {.help = "v ← beta2 · v + (1 − beta2) · g²; below 1",
                .minimum = 0,
                .maximum = 0.99999999})
          .add("epsilon", &Options::epsilon,
               {.help = "x ← x − rate · m̂ / (sqrt(v̂) + epsilon)",
                .minimum = 0,
                .minimum_excluded = true})
          .add("weight_decay", &Options::weight_decay,
               {.help = kDecoupled ? "x ← x − rate · weight_decay · x, in addition to Adam's step"
                                   : "adds weight_decay · x to the gradient",
                .minimum = 0});
  return set;
}

template <bool kDecoupled>
Result<OptimizerOptions> read_adam(const ParameterValues& values) {
  GOSSAMER_TRY(const AdamOptions<kDecoupled> own,
               adam_parameters<kDecoupled>().read("optimizer", values));
  return OptimizerOptions{.rate = own.rate,
                          .rule = {.weight_decay = own.weight_decay,
                                   .kind = kDecoupled ? Kind::adamw : Kind::adam,
                                   .beta1 = own.beta1,
                                   .beta2 = own.beta2,
                                   .epsilon = own.epsilon}};
}

const ParameterSet<MuonOptions>& muon_parameters() {
  static const auto set =
      ParameterSet<MuonOptions>()
          .add("rate", &MuonOptions::rate,
               {.help = "step size γ of the matrices, before the schedule",
                .minimum = 0,
                .minimum_excluded = true})
          .add("momentum", &MuonOptions::momentum,
               {.help = "β of the matrices: M ← β · M + (1 − β) · G; below 1",
                .minimum = 0,
                .maximum = 0.999999})
          .add("nesterov", &MuonOptions::nesterov,
               {.help = "β · M + (1 − β) · G is orthogonalised, in place of M"})
          .add("iterations", &MuonOptions::iterations,
               {.help = "of Newton and Schulz, which orthogonalise a matrix",
                .minimum = 1,
                .maximum = 100})
          .add("weight_decay", &MuonOptions::weight_decay,
               {.help = "x ← x − step size · weight_decay · x, in addition to a step, of all "
                        "tensors",
                .minimum = 0})
          .add("adamw_rate", &MuonOptions::adamw_rate,
               {.help = "step size of biases, scales and the last layer, which AdamW steps with; "
                        "it follows the schedule as rate does",
                .minimum = 0,
                .minimum_excluded = true})
          .add("beta1", &MuonOptions::beta1,
               {.help = "of AdamW; below 1", .minimum = 0, .maximum = 0.999999})
          .add("beta2", &MuonOptions::beta2,
               {.help = "of AdamW; below 1", .minimum = 0, .maximum = 0.99999999})
          .add("epsilon", &MuonOptions::epsilon,
               {.help = "of AdamW", .minimum = 0, .minimum_excluded = true});
  return set;
}

Result<OptimizerOptions> read_muon(const ParameterValues& values) {
  GOSSAMER_TRY(const MuonOptions own, muon_parameters().read("optimizer", values));
  return OptimizerOptions{.rate = own.rate,
                          .rule = {.momentum = own.momentum,
                                   .nesterov = own.nesterov,
                                   .weight_decay = own.weight_decay,
                                   .kind = Kind::muon,
                                   .iterations = own.iterations},
                          .other_rule = {.weight_decay = own.weight_decay,
                                         .kind = Kind::adamw,
                                         .beta1 = own.beta1,
                                         .beta2 = own.beta2,
                                         .epsilon = own.epsilon},
                          .other_rate_factor = own.adamw_rate / own.rate};
}

Result<OptimizerOptions> read_sgd(const ParameterValues& values) {
  GOSSAMER_TRY(const SgdOptions own, sgd_parameters().read("optimizer", values));
  return OptimizerOptions{
      .rate = own.rate,
      .rule = {
          .momentum = own.momentum, .nesterov = own.nesterov, .weight_decay = own.weight_decay}};
}

Result<OptimizerOptions> without_schedule(const std::string& kind, const ParameterValues& values) {
  if (kind == "adam") return read_adam<false>(values);
  if (kind == "adamw") return read_adam<true>(values);
  if (kind == "muon") return read_muon(values);
  if (kind == "sgd") return read_sgd(values);
  return invalid_error("optimizer.kind: there is no optimizer '" + kind +
                       "', only adam, adamw, muon, sgd");
}

}  // namespace

const ParameterSet<ScheduleOptions>& schedule_parameters() {
  static const auto set =
      ParameterSet<ScheduleOptions>()
          .add("schedule", &ScheduleOptions::schedule,
               {.help = "the step size over the local steps, after the warm-up",
                .choices = {"constant", "step", "cosine"}})
          .add("warmup_steps", &ScheduleOptions::warmup_steps,
               {.help = "local steps until the full rate; at step s before: rate · (s + 1) / "
                        "(warmup_steps + 1)",
                .minimum = 0,
                .unit = "steps"})
          .add("milestones", &ScheduleOptions::milestones,
               {.help = "step: from each of these local steps on, counted from the run's start, "
                        "the rate is multiplied by factor",
                .minimum = 1,
                .maximum = 2e9,
                .unit = "steps"})
          .add("factor", &ScheduleOptions::factor,
               {.help = "step: see milestones", .minimum = 0, .minimum_excluded = true})
          .add("final_rate", &ScheduleOptions::final_rate,
               {.help = "cosine: the rate at the end; the rate follows half a cosine over the "
                        "run's local steps",
                .minimum = 0});
  return set;
}

const std::vector<OptimizerKind>& optimizer_kinds() {
  static const std::vector<OptimizerKind> kinds{
      {.name = "adam",
       .summary = "Adam: each coordinate's step divided by the root of its gradient's mean square",
       .source = "Kingma and Ba 2015, Alg. 1",
       .parameters = adam_parameters<false>().specs()},
      {.name = "adamw",
       .summary = "Adam with decoupled weight decay",
       .source = "Loshchilov and Hutter 2019, Alg. 2",
       .parameters = adam_parameters<true>().specs()},
      {.name = "muon",
       .summary = "Muon: the momentum of each hidden layer's weights is orthogonalised; AdamW for "
                  "all other tensors",
       .source = "Jordan 2024",
       .parameters = muon_parameters().specs()},
      {.name = "sgd",
       .summary = "stochastic gradient descent, optionally with momentum or Nesterov momentum",
       .source = "Polyak 1964; Nesterov's form as in Sutskever et al. 2013",
       .parameters = sgd_parameters().specs()}};
  return kinds;
}

Result<OptimizerOptions> make_optimizer(const std::string& kind, const ParameterValues& own,
                                        const ParameterValues& schedule) {
  GOSSAMER_TRY(OptimizerOptions options, without_schedule(kind, own));
  GOSSAMER_TRY(options.schedule, schedule_parameters().read("optimizer", schedule));
  if (options.schedule.schedule == "step" && options.schedule.milestones.empty())
    return invalid_error(
        "optimizer.milestones: the schedule 'step' needs the local steps from which on the rate "
        "is multiplied by optimizer.factor, as [1000, 1500]");
  return options;
}

double rate_at(const OptimizerOptions& options, std::uint64_t step, std::uint64_t steps) {
  const ScheduleOptions& schedule = options.schedule;
  const std::uint64_t warmup = schedule.warmup_steps;
  if (step < warmup)
    return options.rate * (static_cast<double>(step) + 1) / (static_cast<double>(warmup) + 1);
  if (schedule.schedule == "step") {
    const auto passed = [step](int milestone) {
      return static_cast<std::uint64_t>(milestone) <= step;
    };
    return options.rate * std::pow(schedule.factor, static_cast<double>(std::ranges::count_if(
                                                        schedule.milestones, passed)));
  }
  if (schedule.schedule == "cosine") {
    if (step >= steps) return schedule.final_rate;
    const double way = static_cast<double>(step - warmup) /
                       static_cast<double>(steps - warmup);  // step < steps, so ≥ 1
    return schedule.final_rate +
           (options.rate - schedule.final_rate) * (1 + std::cos(std::numbers::pi * way)) / 2;
  }
  return options.rate;
}

}  // namespace gossamer::train
