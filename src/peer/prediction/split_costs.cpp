#include "peer/prediction/split_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity_text.hpp"
#include "peer/setup/memory_check.hpp"
#include "peer/setup/virtual_network.hpp"
#include "train/split/pipelined_gradient.hpp"

namespace gossamer::peer {

std::optional<SplitCosts> split_costs(const Setup& setup) {
  const WorkloadSpec& workload = setup.workload->spec();
  if (!workload.split) return std::nullopt;
  const train::SplitModel& split = *workload.split;
  SplitCosts costs;
  costs.microbatches = microbatches(setup);
  costs.bubble = train::pipeline_bubble(split.stages(), costs.microbatches);
  const train::PipelineCosts pipeline = pipeline_costs(setup);
  if (const auto time = train::pipeline_time(pipeline, costs.microbatches); time.seconds > 0)
    costs.step = time;
  // With links that take no time the idle part does not depend on how long the step takes.
  const int batch = setup.config.shards.batch;
  costs.fast_links_idle =
      train::pipeline_time(train::pipeline_costs(split, 1, batch, sizeof(float)),
                           costs.microbatches)
          .idle;
  const std::size_t memory = memory_of_node(setup);
  costs.whole_memory_bytes =
      static_cast<double>(memory - workload.workspace.own + workload.workspace.whole);
  // All but the workers' own workspaces is shared out like the rows.
  const auto shared = static_cast<double>(memory - workload.workspace.own);
  for (int w = 0; w < static_cast<int>(split.parts().size()); ++w) {
    const train::ModelPart& part = split.parts()[static_cast<std::size_t>(w)];
    const double own = static_cast<double>(
        train::PipelinedGradient<float>::worker_bytes(split, w, costs.microbatches));
    costs.workers.push_back({.part = part,
                             .memory_bytes = shared * static_cast<double>(part.parameters) /
                                                 static_cast<double>(setup.parameters) +
                                             own,
                             .bytes_sent = pipeline.bytes_sent(w)});
  }
  return costs;
}

Json split_json(const SplitCosts& costs) {
  Json workers = Json::array();
  for (const WorkerCosts& worker : costs.workers)
    workers.push_back({{"first_operation", worker.part.first},
                       {"last_operation", worker.part.last},
                       {"parameters", worker.part.parameters},
                       {"flops", worker.part.forward_flops + worker.part.backward_flops},
                       {"memory_bytes", std::llround(worker.memory_bytes)},
                       {"bytes_sent_per_step", worker.bytes_sent}});
  Json json = {{"workers", std::move(workers)},
               {"microbatches", costs.microbatches},
               {"bubble", costs.bubble},
               {"fast_links_idle", costs.fast_links_idle},
               {"step_seconds", Json()},
               {"idle", Json()},
               {"whole_memory_bytes", std::llround(costs.whole_memory_bytes)}};
  if (costs.step) {
    json["step_seconds"] = finite_or_null(costs.step->seconds);
    json["idle"] = finite_or_null(costs.step->idle);
  }
  return json;
}

std::vector<std::pair<std::string, std::string>> split_lines(const SplitCosts& costs) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::size_t p = 0; p < costs.workers.size(); ++p) {
    const WorkerCosts& worker = costs.workers[p];
    lines.emplace_back(
        fmt::format("worker {} of a replica", p),
        fmt::format("{}: {} parameters, {} FLOP a sample, {} of memory; sends {} a step",
                    worker.part.operations(),
                    count_text(static_cast<double>(worker.part.parameters)),
                    count_text(worker.part.forward_flops + worker.part.backward_flops),
                    bytes_text(worker.memory_bytes), bytes_text(worker.bytes_sent)));
  }
  std::string step = fmt::format("{} microbatch{}; workers idle {:.1f} % of a step with fast links",
                                 costs.microbatches, costs.microbatches == 1 ? "" : "es",
                                 100 * costs.fast_links_idle);
  const bool has_slices = std::ranges::any_of(
      costs.workers, [](const WorkerCosts& worker) { return worker.part.slice > 0; });
  if (!has_slices)
    step += fmt::format(" ({:.1f} % at most if stages were equal)", 100 * costs.bubble);
  if (costs.step)
    step += fmt::format(", {:.1f} % here, where it takes {:.4g} s", 100 * costs.step->idle,
                        costs.step->seconds);
  lines.emplace_back("step of a replica", std::move(step));
  return lines;
}

}  // namespace gossamer::peer
