// What the workers of a cut model hold, compute and send.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peer/setup/setup.hpp"
#include "peer/storage/json.hpp"
#include "train/split/pipeline.hpp"

namespace gossamer::peer {

struct WorkerCosts {
  train::ModelPart part;
  double memory_bytes = 0;  ///< its part of the rows, and its workspaces
  double bytes_sent = 0;    ///< outputs and their gradients, in a step
};

struct SplitCosts {
  std::vector<WorkerCosts> workers;
  int microbatches = 0;
  double bubble = 0;           ///< train::pipeline_bubble
  double fast_links_idle = 0;  ///< idle part of the workers' time with fast links
  /// Of the run's virtual time: seconds of a step, and the idle part. None: a step takes no time.
  std::optional<train::PipelineTime> step;
  double whole_memory_bytes = 0;  ///< of a worker that holds the whole model
};

/// None: the model is whole.
std::optional<SplitCosts> split_costs(const Setup& setup);

Json split_json(const SplitCosts& costs);
/// A line for each worker and one for the step: their names and values.
std::vector<std::pair<std::string, std::string>> split_lines(const SplitCosts& costs);

}  // namespace gossamer::peer
