// Follows the logs of a run folder while processes write them: for `gossamer watch`.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/result.hpp"
#include "peer/log/run_files.hpp"
#include "peer/watch/run_view.hpp"

namespace gossamer::peer {

/// Thread: one at a time.
class LogFollower {
 public:
  /// The logs in `folder` and in its direct subfolders are added to `view`, which outlives this
  /// object. `stopped` ends an update early, which may read for minutes.
  LogFollower(
      std::filesystem::path folder, RunView& view,
      std::function<bool()> stopped = [] { return false; })
      : folder_(std::move(folder)), view_(view), stopped_(std::move(stopped)) {}

  /// Adds what was appended to the logs since the last call, and logs that are new; of many logs a
  /// part in turn, so that their rounds are added at about the same time. Where a log was cut or
  /// replaced, as a resumed run does it, the view is reset and all logs are read anew. Errors
  /// (data) name the folder, or the file, line and field; also where logs are not of one run.
  Status update();

 private:
  struct Followed {
    LogReader reader;
    bool begun = false;    ///< the view has its header
    bool skipped = false;  ///< of another part of the model
  };

  Status update_once();
  void begin(Followed& log, Status& fits);
  void read_anew();
  /// Adds the next part of a log. Returns whether more may follow.
  Result<bool> add(Followed& log);

  std::filesystem::path folder_;
  RunView& view_;
  std::function<bool()> stopped_;
  std::map<std::filesystem::path, Followed> logs_;
  /// Each worker of a replica logs the figures of the replica: those of one part are the network's.
  std::optional<int> part_;
};

}  // namespace gossamer::peer
