#include "train/optimizer.hpp"

namespace gossamer::train {

const ParameterSet<OptimizerOptions>& optimizer_parameters() {
  static const auto set =
      ParameterSet<OptimizerOptions>()
          .add("rate", &OptimizerOptions::rate, {.help = "step size γ", .minimum = 0, .minimum_excluded = true})
          .add("momentum", &OptimizerOptions::momentum,
               {.help = "v ← momentum · v + g, x ← x − rate · v; below 1", .minimum = 0, .maximum = 0.999999})
          .add("nesterov", &OptimizerOptions::nesterov, {.help = "x ← x − rate · (g + momentum · v)"})
          .add("weight_decay", &OptimizerOptions::weight_decay,
               {.help = "adds weight_decay · x to the gradient", .minimum = 0})
          .add("schedule", &OptimizerOptions::schedule,
               {.help = "step size over the local steps", .choices = {"constant", "warmup"}})
          .add("warmup_steps", &OptimizerOptions::warmup_steps,
               {.help = "warmup: local steps until the full rate; at step s before: rate · (s + 1) / (warmup_steps + 1)",
                .minimum = 0, .unit = "steps"});
  return set;
}

double rate_at(const OptimizerOptions& options, std::uint64_t step) {
  if (options.schedule != "warmup" || step >= options.warmup_steps) return options.rate;
  return options.rate * (static_cast<double>(step) + 1) / (static_cast<double>(options.warmup_steps) + 1);
}

}  // namespace gossamer::train
