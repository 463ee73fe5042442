// The logs of a run whose replicas are cut over processes: those of each part together.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "peer/log/run_files.hpp"

namespace gossamer::peer {

/// The workers of a replica, by the configuration in the header of a log, which may hold anything.
std::size_t parts_of(const Json& header);

/// The logs by part, ascending; of models that are not cut over processes there is one part. Errors
/// (data): a part has no log, or a log is of models that are cut in another way.
Result<std::vector<std::vector<ProcessLog>>> logs_by_part(const std::filesystem::path& folder,
                                                          std::vector<ProcessLog> logs);

/// Leaves out the replicas of which a part is missing: `missing` are peers, ascending.
void leave_out(std::vector<std::vector<ProcessLog>>& parts, const std::vector<int>& missing);

}  // namespace gossamer::peer
