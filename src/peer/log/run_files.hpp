// A run folder read back: the logs of its processes, for `collect` and `export`.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// One process's log, every record of it checked (peer/log/log_records.hpp).
struct ProcessLog {
  int lowest_peer = 0;
  std::filesystem::path path;
  std::uint64_t bytes = 0;  ///< of the whole lines that were read, which a torn one may follow
  Json header;
  int peers = 0;            ///< of the network, 1 to 65,535
  int servers = 0;          ///< of the network; their ids follow the peers'
  std::vector<int> hosted;  ///< peers and servers of this process, ascending
  std::vector<int> models;  ///< those of them whose rows are in its final parameters
  std::vector<Json>
      records;  ///< after the header; a torn last line (the process was killed) is left out
  const Json* end() const;  ///< the end record, or null
};

/// The log of the process whose lowest node is `lowest`, without its records, of which `take` gets
/// one after the other with what the header said and the bytes of the lines before it; nothing
/// where it is cut within its header. Errors (data) name the file, the line and the field.
Result<std::optional<ProcessLog>> read_log(
    const std::filesystem::path& path, int lowest,
    const std::function<void(const ProcessLog& log, Json&& record)>& take);

/// The logs below `folder`, by lowest peer: in the folder itself or, one level down, in one folder
/// per process. Errors (data) name the folder, or the file, line and field. A log cut within its
/// header, whose process was killed before it wrote anything, is an error too, unless `left_out` is
/// given: it is told of each, and the others are returned.
Result<std::vector<ProcessLog>> read_logs(
    const std::filesystem::path& folder,
    const std::function<void(const std::string& message)>& left_out = {});

}  // namespace gossamer::peer
