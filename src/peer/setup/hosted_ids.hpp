// The ids of the peers that a process hosts, from an option or from the environment of its
// launcher.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/setup/local_rank.hpp"

namespace gossamer::peer {

/// The ids in `option`, of the form "3", "0,1" or "0-3"; if it is empty, those in GOSSAMER_ID, or
/// the rank that a launcher sets (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK). Ascending.
/// `origin`: name of the option in messages. Errors (invalid): no id, or none of this form.
Result<std::vector<int>> find_hosted_ids(const std::string& option, const std::string& origin,
                                         const Environment& environment);

}  // namespace gossamer::peer
