#include "simulator/oracle/link_history.hpp"

#include <algorithm>

namespace gossamer::simulator {
namespace {

/// The last period that began before round t.
template <class Periods>
auto* period_at(Periods& periods, int a, int j, Round t) {
  decltype(&periods.begin()->second.front()) last = nullptr;
  const auto found = periods.find({a, j});
  if (found == periods.end()) return last;
  for (auto& link : found->second)
    if (link.from_start || link.restored < t) last = &link;
  return last;
}

/// `peer`: of incarnation a.
template <class Periods>
auto* same_connection(Periods& periods, int a, int peer, const LinkPeriod& link) {
  decltype(&periods.begin()->second.front()) same = nullptr;
  const auto found = periods.find({link.other, peer});
  if (found == periods.end()) return same;
  for (auto& theirs : found->second)
    if (same == nullptr && theirs.other == a && theirs.connection == link.connection)
      same = &theirs;
  return same;
}

}  // namespace

LinkHistory::LinkHistory(const Scenario& scenario, const Protocol& protocol, const Trace& trace)
    : trace_(trace) {
  for (int a = 0; a < scenario.peers; ++a)
    for (const int j : protocol.algorithm->partners(a, *protocol.schedule))
      if (!trace.incarnations[static_cast<std::size_t>(a)].joins)
        periods_[{a, j}] = {{.other = j, .from_start = true, .entered = 0}};
  for (const LinkRecord& link : trace.links) {
    first_change_.try_emplace(link.incarnation, link.round);
    std::vector<LinkPeriod>& periods = periods_[{link.incarnation, peer_of(link.other)}];
    if (link.restored) {
      periods.push_back({.other = link.other,
                         .connection = link.connection,
                         .restored = link.round,
                         .restored_at = link.at});
      any_restored_ = true;
    } else if (!periods.empty()) {  // a peer that joins anew loses links that it never had
      periods.back().lost = link.round;
      periods.back().lost_at = link.at;
    }
  }
}

Round LinkHistory::first_change(int a) const {
  const auto found = first_change_.find(a);
  return found == first_change_.end() ? kNever : found->second;
}

const LinkPeriod* LinkHistory::at(int a, int j, Round t) const {
  return period_at(periods_, a, j, t);
}

const LinkPeriod* LinkHistory::other_end(int a, const LinkPeriod& link) const {
  return same_connection(periods_, a, peer_of(a), link);
}

const LinkPeriod* LinkHistory::at_the_end(int a, int b) const {
  const auto found = periods_.find({a, peer_of(b)});
  if (found == periods_.end() || found->second.empty()) return nullptr;
  const LinkPeriod& link = found->second.back();
  if (link.other != b || link.lost != kNever) return nullptr;
  const LinkPeriod* other = other_end(a, link);
  return other != nullptr && other->lost == kNever ? &link : nullptr;
}

void LinkHistory::note_use(int a, int j, Round t) {
  LinkPeriod* link = period_at(periods_, a, j, t);
  if (link == nullptr || !link->covers(t)) return;
  link->used = true;
  link->entered = std::min(link->entered, t);
  if (LinkPeriod* other = same_connection(periods_, a, peer_of(a), *link))
    other->entered = std::min(other->entered, t);
}

}  // namespace gossamer::simulator
