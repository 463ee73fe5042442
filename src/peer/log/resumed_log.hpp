// The log of a run that goes on: checked whole, and cut where the run begins again. Logs grow to
// gigabytes, so what is kept of each line is its place, its round and its loss.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "gossip/exchange/exchange.hpp"
#include "peer/log/run_files.hpp"

namespace gossamer::peer {

/// One thread at a time.
class ResumedLog {
 public:
  /// The log of the process whose lowest node is `lowest`; nothing where it is cut within its
  /// header. Errors (data) name the file, the line and the field.
  static Result<std::optional<ResumedLog>> read(const std::filesystem::path& path, int lowest);

  const Json& header() const { return log_.header; }
  /// Whether it ends with the end of a run that did all its rounds.
  bool finished() const { return finished_; }

  /// Drops the records of `round` and later, and the end: the file is the old one or the new one,
  /// whatever happens. Where they come last, as in the log of a single node, that takes no longer
  /// for a long log, unless another process writes to it: then this one's is a new file. Returns
  /// the last train loss of each hosted node that is still in it; NaN where there is none. Errors
  /// (data) name the file.
  Result<std::vector<double>> cut(gossip::Round round) const;

 private:
  /// A line behind the header.
  struct Line {
    std::uint64_t begin = 0;  ///< byte of the file
    gossip::Round round = 0;
    int trained =
        -1;  ///< place among the hosted of the node whose train loss it gives; -1: it gives none
    double train_loss = 0;
  };

  ResumedLog() = default;
  static Line line_of(const ProcessLog& log, const Json& record);
  Status rewrite(gossip::Round round) const;

  ProcessLog log_;  ///< without its records
  std::vector<Line> lines_;
  std::uint64_t size_ = 0;  ///< of the file, when it was read
  bool finished_ = false;
};

}  // namespace gossamer::peer
