// The existing log of a run that is resumed: it is read and checked completely, and truncated at
// the round from which the run resumes. Logs may have gigabytes, so only the position, the round
// and the train loss of each line are kept in memory.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gossip/exchange/exchange.hpp"
#include "peer/log/run_files.hpp"

namespace gossamer::peer {

/// Thread: one at a time.
class ResumedLog {
 public:
  /// Reads the log of the process whose lowest node is `lowest`; returns nothing if it ends within
  /// its header. Errors (data) name the file, the line and the field.
  static Result<std::optional<ResumedLog>> read(const std::filesystem::path& path, int lowest);

  const Json& header() const { return log_.header; }
  /// Whether the log ends with the end record of a run that completed all its rounds.
  bool finished() const { return finished_; }

  /// Drops the end record and the records of `round` and later rounds, atomically. If they are the
  /// last lines of the file, as in the log of a single node, the file is truncated in place, in a
  /// time that does not depend on its length; otherwise, or if another process has the file open,
  /// it is replaced. Returns the last remaining train loss of each hosted node; NaN if there is
  /// none. Errors (data) name the file.
  Result<std::vector<double>> truncate(gossip::Round round) const;
  /// Appends the records of `round` and later rounds, which truncate() would drop, to `path`, and
  /// returns how many there are. An end record alone does not count. Errors (data) name the file.
  Result<std::size_t> copy_dropped(gossip::Round round, const std::filesystem::path& path) const;

 private:
  /// A line after the header.
  struct Line {
    std::uint64_t begin = 0;  ///< offset in the file, in bytes
    gossip::Round round = 0;
    int node_index = -1;  ///< index in `hosted` of the node whose train loss it has; -1: no loss
    double train_loss = 0;
  };

  ResumedLog() = default;
  static Line line_of(const ProcessLog& log, const Json& record);
  Status each_line(gossip::Round round,
                   const std::function<Status(std::string_view text, bool dropped)>& visit) const;
  Status rewrite(gossip::Round round) const;

  ProcessLog log_;  ///< without its records
  std::vector<Line> lines_;
  std::uint64_t size_ = 0;  ///< of the file when it was read, in bytes
  bool finished_ = false;
};

}  // namespace gossamer::peer
