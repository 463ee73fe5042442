// Reads the logs of a run folder, for `collect`, `export`, `gap` and --resume.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// The log of a process. All of its records were checked (peer/log/log_records.hpp).
struct ProcessLog {
  int lowest_peer = 0;
  std::filesystem::path path;
  std::uint64_t bytes = 0;  ///< of the complete lines read so far
  Json header;
  int peers = 0;    ///< of the network, 1 to 65,535
  int servers = 0;  ///< of the network; their ids follow those of the peers
  int part = 0;     ///< of the model, that this process holds of it; 0 too where it is whole
  std::vector<int> hosted;    ///< peers and servers of this process, ascending
  std::vector<int> models;    ///< those of `hosted` whose rows are in the final parameters
  std::vector<Json> records;  ///< after the header, without an incomplete last line
  const Json* end() const;    ///< the end record; null if there is none
};

/// The file of the final parameters of a process's nodes, beside its log.
std::filesystem::path final_path(const ProcessLog& log);

/// Reads a log, and what is appended to it later. Thread: one at a time.
class LogReader {
 public:
  using OnRecord = std::function<void(const ProcessLog& log, Json&& record)>;

  /// The log at `path`, of the process whose lowest node is `lowest`.
  LogReader(std::filesystem::path path, int lowest);

  /// Reads the complete lines that were appended since the last call, `most` of them at most. Calls
  /// `on_record` with each record after the header, and with the log so far. Returns whether it
  /// read `most` lines, so that more may follow. Errors (data) name the file, the line and the
  /// field; an error is returned by each later call too.
  Result<bool> read(const OnRecord& on_record,
                    std::size_t most = std::numeric_limits<std::size_t>::max());
  /// Whether the file still has what was read last where it was read: it was not cut or replaced.
  bool is_unchanged() const;
  /// What was read; its header is null until the header is complete, and its records are empty.
  const ProcessLog& log() const& { return log_; }
  ProcessLog log() && { return std::move(log_); }

 private:
  std::optional<std::string> add(std::string_view line, const OnRecord& on_record);

  ProcessLog log_;
  std::size_t lines_ = 0;
  std::string tail_;  ///< the last bytes that were read
  bool ended_ = false;
  Status failed_;
};

/// The logs in `folder` and in its direct subfolders (one per process): the lowest node of each,
/// and its file. Error (data): names the folder, which cannot be read.
Result<std::vector<std::pair<int, std::filesystem::path>>> log_files(
    const std::filesystem::path& folder);

/// Error (data): there is no log with a header in `folder`.
Error no_run_in(const std::filesystem::path& folder);

/// Reads the log of the process whose lowest node is `lowest`. Calls `on_record` with each record
/// after the header, and with the log so far; the records are not stored. Returns nothing if the
/// file ends within its header. Errors (data) name the file, the line and the field.
Result<std::optional<ProcessLog>> read_log(const std::filesystem::path& path, int lowest,
                                           const LogReader::OnRecord& on_record);

/// Reads the logs in `folder` and in its direct subfolders (one per process), sorted by lowest
/// peer. Errors (data) name the folder, or the file, line and field. A log that ends within its
/// header, because its process was killed before it wrote anything, is an error if `on_skipped` is
/// empty; otherwise it is skipped and reported to `on_skipped`.
Result<std::vector<ProcessLog>> read_logs(
    const std::filesystem::path& folder,
    const std::function<void(const std::string& message)>& on_skipped = {});

/// The nodes of the run `run_id` of which `folder` has a log, ascending, finished or not. A log
/// that is damaged or of another run says nothing.
std::vector<int> logged_nodes(const std::filesystem::path& folder, const std::string& run_id);

/// Nodes of processes that have done the last round of their run and have ended, ascending.
struct DoneNodes {
  std::vector<int> all;
  std::vector<int> in_part;  ///< those that have left earlier rounds out, and so have lost peers
};
/// By the logs of the run `run_id`, whose last round is `rounds`, in `folder`. A process that ended
/// otherwise may be resumed. A log that is missing, damaged or of another run says nothing.
DoneNodes done_nodes(const std::filesystem::path& folder, const std::string& run_id,
                     std::uint64_t rounds);

}  // namespace gossamer::peer
