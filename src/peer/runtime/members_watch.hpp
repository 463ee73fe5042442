// Watches the file of members while a network runs, so that keys are added, rotated and revoked
// without a restart, and expire when their time comes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "gossip/scheduler.hpp"
#include "net/tls/members.hpp"
#include "peer/config/members_file.hpp"

namespace gossamer::peer {

/// Thread: the scheduler's.
class MembersWatch {
 public:
  using Clock = std::function<std::chrono::sys_seconds()>;

  /// Looks at the file and at `clock` each second. `changed` receives the list that the file has
  /// now (the caller read it earlier), each new one, and what is left when keys expire. A file that
  /// cannot be read later on is reported by `message`, and what the file said before stays. Errors
  /// as of read_members().
  static Result<std::unique_ptr<MembersWatch>> make(gossip::Scheduler& scheduler, std::string path,
                                                    std::function<void(net::MemberList)> changed,
                                                    std::function<void(const std::string&)> message,
                                                    Clock clock = wall_time);
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

  MembersWatch(gossip::Scheduler& scheduler, std::string path,
               std::function<void(net::MemberList)> changed,
               std::function<void(const std::string&)> message, Clock clock);
  Version version() const;
  void look();
  Status read();
  void apply(std::chrono::sys_seconds now);

  gossip::Scheduler& scheduler_;
  std::string path_;
  std::function<void(net::MemberList)> changed_;
  std::function<void(const std::string&)> message_;
  Clock clock_;
  Version seen_;
  MembersFile file_;                  ///< the last that could be read
  std::chrono::sys_seconds applied_;  ///< the time of the list that `changed` received last
  gossip::Scheduler::TimerId timer_;
};

}  // namespace gossamer::peer
