// Workloads that train nothing: of an algorithm (consensus), and of a run that is over and whose
// program is not here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "peer/setup/workload.hpp"

namespace gossamer::peer {

/// Rows of one tensor "x" of `length` values, which start as standard normal numbers keyed by
/// (seed, node).
std::shared_ptr<Workload> make_untrained_workload(std::size_t length, std::uint64_t seed);

/// Stands in for the workload of a finished run if its model or data are not on this machine: rows
/// of the run's tensors.
std::shared_ptr<Workload> make_recorded_workload(std::vector<train::ParameterBlock> blocks,
                                                 std::uint64_t seed);

}  // namespace gossamer::peer
