#include "peer/watch/log_follower.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::peer {
namespace {

/// Lines of a log in a part, for each of its nodes: few enough for the sketches of so many rounds
/// of all peers to be kept (RoundHistory::kMostSketchValues), in networks of up to a thousand.
constexpr std::size_t kLinesOfNode = 4;

}  // namespace

/// Once, when the header of the log was read.
void LogFollower::begin(Followed& log, Status& fits) {
  const ProcessLog& read = log.reader.log();
  if (log.begun || log.skipped || read.header.is_null() || !fits.ok()) return;
  if (!part_) part_ = read.part;
  log.skipped = read.part != *part_;
  if (log.skipped) return;
  log.begun = true;
  if (const Status begun = view_.begin(read.header); !begun.ok())
    fits = data_error(fmt::format("{} {}; all logs in {} must be of one run", read.path.string(),
                                  begun.error().message, folder_.string()));
}

Result<bool> LogFollower::add(Followed& log) {
  if (log.skipped) return false;
  Status fits;
  const std::size_t nodes = std::max<std::size_t>(1, log.reader.log().hosted.size());
  const auto on_record = [&](const ProcessLog& read, Json&& record) {
    begin(log, fits);
    if (fits.ok() && !log.skipped) view_.add(record, read.hosted);
  };
  GOSSAMER_TRY(const bool more, log.reader.read(on_record, kLinesOfNode * nodes));
  begin(log, fits);
  if (!fits.ok()) return fits.error();
  return more;
}

Status LogFollower::update_once() {
  const auto is_unchanged = [](const auto& log) { return log.second.reader.is_unchanged(); };
  if (!std::ranges::all_of(logs_, is_unchanged)) read_anew();
  GOSSAMER_TRY(const auto files, log_files(folder_));
  for (const auto& [lowest, path] : files) logs_.try_emplace(path, Followed{{path, lowest}});
  for (bool more = true; more && !stopped_();) {
    more = false;
    for (auto& [unused, log] : logs_) {
      GOSSAMER_TRY(const bool has_more, add(log));
      more = more || has_more;
    }
  }
  return {};
}

void LogFollower::read_anew() {
  logs_.clear();
  part_.reset();
  view_.reset();
}

Status LogFollower::update() {
  Status updated = update_once();
  if (updated.ok() || logs_.empty()) return updated;
  // A log may have been cut, and have grown again, while it was read.
  read_anew();
  return update_once();
}

}  // namespace gossamer::peer
