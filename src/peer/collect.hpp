// `gossamer collect`: the summary of a networked run, from the files that its processes left.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "peer/files.hpp"

namespace gossamer::peer {

/// Puts the summary of the run below `folder` together and writes its summary.json. Errors (data) name the peers whose files
/// are missing, of another run, or damaged.
Result<Json> collect(const std::filesystem::path& folder);

}  // namespace gossamer::peer
