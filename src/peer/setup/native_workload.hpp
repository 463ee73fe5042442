// The models and data sets of the library, as a workload.
#pragma once

#include <memory>
#include <span>

#include "base/result.hpp"
#include "gossip/attack.hpp"
#include "gpu/device.hpp"
#include "peer/privacy/privacy_plan.hpp"
#include "peer/setup/workload.hpp"
#include "train/dataset.hpp"

namespace gossamer::peer {

/// What a data set needs to know of a process that hosts the nodes `hosted`.
train::DatasetContext data_context(const Config& config, std::span<const int> hosted);

/// The workload of [model], [data] and [optimizer] of a process that hosts the nodes `hosted`,
/// trained on `device`, which outlives it. The samples of hostile peers are as `attack` says. `run`
/// passed check_privacy().
/// Errors: (invalid) the sections do not fit together, or the attack does not fit the data; (data)
/// a file is missing or damaged.
Result<std::shared_ptr<Workload>> make_native_workload(const PrivateRun& run, gpu::Device& device,
                                                       std::span<const int> hosted,
                                                       const gossip::AttackPlan& attack,
                                                       train::Worker<float> worker = {});

}  // namespace gossamer::peer
