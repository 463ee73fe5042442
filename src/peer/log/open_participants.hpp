// Which peers took part in which rounds of an open run: no configuration says so, the logs do.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "peer/config/config.hpp"
#include "peer/log/run_files.hpp"
#include "topology/participants/participants.hpp"

namespace gossamer::peer {

/// Those of a run that had been planned as this one went. Where processes have recorded different
/// participants of one round, because they were apart, or because one of them joined again after
/// the others had resumed from an earlier round, those count of the lowest peer that has records
/// before and after it. Error (data): what the logs have fits together as no run.
Result<topology::Participants> open_participants(const RunOptions& run,
                                                 const std::vector<ProcessLog>& logs);

}  // namespace gossamer::peer
