// Watches the file of members while a network runs, so that keys are added, rotated and revoked
// without a restart.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>

#include "gossip/scheduler.hpp"
#include "net/tls/members.hpp"

namespace gossamer::peer {

/// Thread: the scheduler's.
class MembersWatch {
 public:
  /// Looks at the file each second. `changed` receives each new list; a file that cannot be read is
  /// reported by `message`, and the list stays as it was.
  MembersWatch(gossip::Scheduler& scheduler, std::string path,
               std::function<void(net::MemberList)> changed,
               std::function<void(const std::string&)> message);
  ~MembersWatch();
  MembersWatch(const MembersWatch&) = delete;
  MembersWatch& operator=(const MembersWatch&) = delete;

  /// Reads the file now.
  void reload();

 private:
  /// What changes when a file is written or replaced: device, inode, size, and the times of the
  /// last changes in nanoseconds.
  using Version =
      std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;

  Version version() const;
  void look();

  gossip::Scheduler& scheduler_;
  std::string path_;
  std::function<void(net::MemberList)> changed_;
  std::function<void(const std::string&)> message_;
  Version seen_;
  gossip::Scheduler::TimerId timer_;
};

}  // namespace gossamer::peer
