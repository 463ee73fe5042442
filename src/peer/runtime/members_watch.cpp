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
      clock_(std::move(clock)),
      timer_(scheduler_.after(kInterval, [this] { look(); })) {}

Result<std::unique_ptr<MembersWatch>> MembersWatch::make(
    gossip::Scheduler& scheduler, std::string path, std::function<void(net::MemberList)> changed,
    std::function<void(const std::string&)> message, Clock clock) {
  std::unique_ptr<MembersWatch> watch(new MembersWatch(
      scheduler, std::move(path), std::move(changed), std::move(message), std::move(clock)));
  GOSSAMER_TRY_STATUS(watch->read());
  return watch;
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
  const auto now = clock_();
  if (now < applied_) return apply(now);  // the clock was set back
  if (file_.next_expiry(applied_) > now) return;
  for (const auto& [id, entries] : file_.keys)
    for (const auto& [key, expires] : entries)
      if (expires > applied_ && expires <= now)
        message_(fmt::format("net.members: the key {} of peer {} has expired", to_string(key), id));
  apply(now);
}

void MembersWatch::apply(std::chrono::sys_seconds now) {
  applied_ = now;
  changed_(file_.at(now));
}

Status MembersWatch::read() {
  seen_ = version();  // before it is read: a later change is a change
  GOSSAMER_TRY(file_, read_members(path_));
  apply(clock_());
  return {};
}

void MembersWatch::reload() {
  const Status done = read();
  message_(done.ok() ? fmt::format("net.members: {} was read again", path_)
                     : fmt::format("net.members: the list of members stays as it was: {}",
                                   done.error().message));
}

}  // namespace gossamer::peer
