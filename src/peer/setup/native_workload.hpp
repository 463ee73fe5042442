// The models and data sets of the library, as a workload.
#pragma once

#include <memory>
#include <span>

#include "base/result.hpp"
#include "gossip/algorithm.hpp"
#include "gpu/device.hpp"
#include "peer/config/config.hpp"
#include "peer/setup/workload.hpp"

namespace gossamer::peer {

/// The workload of [model], [data] and [optimizer] of a process that hosts the nodes `hosted`,
/// trained on `device`, which outlives it. The labels of the shards of the peers `flipped` are
/// flipped. Errors: (invalid) the sections do not fit together, or there are no labels to flip;
/// (data) a file is missing or damaged.
Result<std::shared_ptr<Workload>> make_native_workload(const Config& config,
                                                       const gossip::Algorithm& algorithm,
                                                       gpu::Device& device,
                                                       std::span<const int> hosted,
                                                       std::span<const int> flipped = {});

}  // namespace gossamer::peer
