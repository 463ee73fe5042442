// A run folder read back: the logs of its processes, for `collect` and `export`.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "peer/files.hpp"

namespace gossamer::peer {

/// One process's log.
struct ProcessLog {
  int lowest_peer = 0;
  std::filesystem::path path;
  Json header;
  std::vector<Json> records;  ///< after the header; a torn last line (the process was killed) is left out
  const Json* end() const;    ///< the end record, or null
};

/// The logs below `folder`, by lowest peer: in the folder itself or, one level down, in one folder per process. Errors
/// (data) name the folder or the file and line.
Result<std::vector<ProcessLog>> read_logs(const std::filesystem::path& folder);

}  // namespace gossamer::peer
