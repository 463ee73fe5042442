#include "peer/runtime/join_watch.hpp"

#include <fmt/format.h>

#include <utility>

namespace gossamer::peer {

JoinWatch::JoinWatch(gossip::Scheduler& scheduler, gossip::PeerEngine& engine,
                     double failure_timeout_seconds, double join_timeout_seconds, OnFault on_fault)
    : scheduler_(scheduler),
      engine_(engine),
      failure_timeout_(gossip::from_seconds(failure_timeout_seconds)),
      join_timeout_seconds_(join_timeout_seconds),
      on_fault_(std::move(on_fault)) {}

gossip::Time JoinWatch::waited(bool waits, std::optional<gossip::Time>& since) const {
  const gossip::Time now = scheduler_.now();
  if (!waits) since.reset();
  else if (!since) since = now;
  return since ? now - *since : gossip::Time(0);
}

// A partner that has not left dials at least every second. So if none is connected after a failure
// timeout, none is left. Partners that are connected may wait for rows themselves, for a round of
// another peer, or for ever.
void JoinWatch::look() {
  using DonorSearch = gossip::Membership::DonorSearch;
  const DonorSearch search = engine_.membership().donor_search();
  if (scheduler_.stopped() || engine_.finished() || search == DonorSearch::not_needed) return;
  if (waited(search == DonorSearch::no_neighbour, alone_since_) >= failure_timeout_)
    return on_fault_(
        {ErrorKind::join_timeout,
         fmt::format("peer {} came too late: every peer that it could ask for rows has "
                     "left, because it has done its last round or ended",
                     engine_.id())});
  if (waited(search != DonorSearch::requested, helpless_since_) >=
      gossip::from_seconds(join_timeout_seconds_))
    return on_fault_({ErrorKind::join_timeout,
                      fmt::format("peer {} joins nothing: for {:g} s all that it reaches wait for "
                                  "rows themselves; stop all processes, and start "
                                  "them again together, with --resume auto",
                                  engine_.id(), join_timeout_seconds_)});
  scheduler_.after(failure_timeout_ / 4, [this] { look(); });
}

}  // namespace gossamer::peer
