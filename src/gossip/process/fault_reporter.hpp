// Where the parts of the protocol report what they cannot continue after.
#pragma once

#include <functional>
#include <set>
#include <utility>

#include "base/result.hpp"
#include "gossip/link.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class FaultReporter {
 public:
  using OnFault = std::function<void(Error)>;

  /// `on_fault` is called once, with the first fault. `hosted`: the peers of this process; outlives
  /// the reporter.
  FaultReporter(const std::set<int>& hosted, OnFault on_fault)
      : hosted_(hosted), on_fault_(std::move(on_fault)) {}

  /// The run cannot continue. The operations concerned never complete.
  void fault(Error error) {
    if (!std::exchange(faulted_, true)) on_fault_(std::move(error));
  }

  /// A chunk turned out to break the protocol after deliver() had accepted it. The link from a peer
  /// of another process is lost (on_protocol_violation); from a peer of this process, or where no
  /// handler is set, the violation is a fault.
  void protocol_violation(const ChunkHeader& header, Error why) {
    if (on_protocol_violation && !hosted_.contains(header.from))
      on_protocol_violation(header.to, header.from, why);
    else fault(std::move(why));
  }

  /// Loses the link between `here` and `there`; later, from the scheduler's loop.
  std::function<void(int here, int there, const Error& why)> on_protocol_violation;

  /// `peer` of another process has not sent its rows to `here` in time.
  void overdue(int here, int peer, Error why) {
    if (on_overdue) on_overdue(here, peer, why);
    else fault(std::move(why));
  }
  /// Loses the link, as on_protocol_violation does, and keeps it lost for a while.
  std::function<void(int here, int there, const Error& why)> on_overdue;

  /// The link between `here` and `there`, of this process or another, is to be made anew.
  void reset_link(int here, int there, Error why) {
    if (on_reset) on_reset(here, there, why);
    else fault(std::move(why));
  }
  /// Loses the link at both ends, and restores it; later, from the scheduler's loop.
  std::function<void(int here, int there, const Error& why)> on_reset;

  /// `there` has left, and nothing is due on its link to `here` any more: it is closed, and may be
  /// made anew if the peer comes back.
  void part(int here, int there) {
    if (on_parted) on_parted(here, there);
  }
  std::function<void(int here, int there)> on_parted;

  bool is_hosted(int peer) const { return hosted_.contains(peer); }

 private:
  const std::set<int>& hosted_;
  OnFault on_fault_;
  bool faulted_ = false;
};

}  // namespace gossamer::gossip
