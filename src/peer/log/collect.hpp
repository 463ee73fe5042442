// `gossamer collect`: the summary of a networked run, from the files of its processes.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "peer/config/config.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// Computes the summary of the run in `folder`. `overrides` set where
/// this machine has files that the run's machines had elsewhere (data.path); an override that would
/// change the run is an error (invalid). With `survivors`, peers whose files are missing or have no
/// end are left out and listed in `lost_peers`. Errors (data) name the peers whose files are
/// missing, damaged, or from another run.
Result<Json> collect(const std::filesystem::path& folder,
                     const std::vector<Override>& overrides = {}, bool survivors = false);

}  // namespace gossamer::peer
