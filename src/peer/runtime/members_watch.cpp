#include "peer/runtime/members_watch.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "peer/config/members_file.hpp"

namespace gossamer::peer {

namespace {

constexpr gossip::Time kInterval = std::chrono::seconds(1);

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

MembersWatch::MembersWatch(gossip::Scheduler& scheduler, std::string path,
                           std::function<void(net::MemberList)> changed,
                           std::function<void(const std::string&)> message, Clock clock)
    : scheduler_(scheduler),
      path_(std::move(path)),
      changed_(std::move(changed)),
      message_(std::move(message)),
      clock_(std::move(clock)) {
  read();
  timer_ = scheduler_.after(kInterval, [this] { look(); });
}

MembersWatch::~MembersWatch() { scheduler_.cancel(timer_); }

MembersWatch::Version MembersWatch::version() const {
  struct stat status{};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

void MembersWatch::look() {
  timer_ = scheduler_.after(kInterval, [this] { look(); });
  if (version() != seen_) reload();
  if (const auto now = clock_(); next_expiry_ <= now) {
    next_expiry_ = file_.next_expiry(now);
    message_(fmt::format("net.members: a key in {} has expired", path_));
    changed_(file_.at(now));
  }
}

bool MembersWatch::read() {
  seen_ = version();  // before it is read: a later change is a change
  auto file = read_members(path_);
  if (!file.ok()) {
    message_(
        fmt::format("net.members: the list of members stays as it was: {}", file.error().message));
    return false;
  }
  const auto now = clock_();
  file_ = *std::move(file);
  next_expiry_ = file_.next_expiry(now);
  changed_(file_.at(now));
  return true;
}

void MembersWatch::reload() {
  if (read()) message_(fmt::format("net.members: {} was read again", path_));
}

}  // namespace gossamer::peer
