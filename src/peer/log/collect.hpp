// `gossamer collect`: the summary of a networked run, from the files that its processes left.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "peer/config/config.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// Puts the summary of the run below `folder` together and writes its summary.json. `overrides` say
/// where this machine finds what the run's machines had elsewhere (data.path). Errors (data) name
/// the peers whose files are missing, of another run, or damaged; an override that would make it
/// another run is refused (invalid). `survivors`: of a network that went on without some peers, the
/// others' summary; those whose files are not there, or have no end, are in its `lost`.
Result<Json> collect(const std::filesystem::path& folder,
                     const std::vector<Override>& overrides = {}, bool survivors = false);

}  // namespace gossamer::peer
