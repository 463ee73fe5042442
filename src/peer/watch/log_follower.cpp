#include "peer/watch/log_follower.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

ino_t inode_of(const fs::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

bool LogFollower::was_replaced(const fs::path& path, const Followed& log) const {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  return error || bytes < log.reader.log().bytes || inode_of(path) != log.inode;
}

Status LogFollower::add(Followed& log) {
  const auto begin = [&]() -> Status {
    const ProcessLog& read = log.reader.log();
    if (log.begun || read.header.is_null()) return {};
    log.begun = true;
    if (view_.begin(read.header)) return {};
    return data_error(fmt::format("{} is the log of another run than the others in {}",
                                  read.path.string(), folder_.string()));
  };
  Status other_run;
  GOSSAMER_TRY_STATUS(log.reader.read([&](const ProcessLog& read, Json&& record) {
    if (other_run.ok()) other_run = begin();
    if (other_run.ok()) view_.add(record, read.hosted);
  }));
  return other_run.ok() ? begin() : other_run;
}

Status LogFollower::update() {
  for (const auto& [path, log] : logs_)
    if (was_replaced(path, log)) {
      logs_.clear();
      view_.reset();
      break;
    }
  GOSSAMER_TRY(const auto files, log_files(folder_));
  for (const auto& [lowest, path] : files) {
    const auto [log, is_new] = logs_.try_emplace(path, Followed{{path, lowest}});
    if (is_new) log->second.inode = inode_of(path);
    GOSSAMER_TRY_STATUS(add(log->second));
  }
  return {};
}

}  // namespace gossamer::peer
