// Checks of membership at the end of a run: that joining peers were admitted, and that every peer
// knows which peers are reachable.
#include <algorithm>

#include <fmt/ranges.h>

#include "simulator/oracle/bounds.hpp"
#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/components.hpp"

namespace gossamer::simulator {
namespace {

/// The running incarnations that a joining one has links to, and by when it is due to be admitted.
struct Donors {
  std::vector<int> linked;
  Time due{0};
};

Donors donors_of(const TraceIndex& index, int a) {
  Donors donors{{}, faults_end(index.scenario)};
  for (const auto& [ends, periods] : index.links().periods())
    for (const LinkPeriod& link : periods) {
      if (ends.first != a && link.other != a) continue;
      donors.due =
          std::max({donors.due, link.restored_at, link.lost == kNever ? Time(0) : link.lost_at});
      const Incarnation& other = index.incarnation(link.other);
      if (ends.first != a || !linked(index, a, link.other) || other.rounds.empty()) continue;
      donors.linked.push_back(link.other);
      // Before its own first round it had no rows to give.
      if (other.joins) donors.due = std::max(donors.due, other.rounds.front().began);
    }
  donors.due += settling_time(index.scenario, index.protocol);
  return donors;
}

/// Of an open run: whether the first round in which the joining incarnation may take part lies
/// beyond the end, because it had no link before.
bool may_join_too_late(const TraceIndex& index, int a) {
  Round linked_in = index.rounds();
  for (const LinkRecord& link : index.trace.links)
    if (link.restored && link.other == a) linked_in = std::min(linked_in, link.round);
  const auto distance =
      static_cast<Round>(index.protocol.longest_period() + index.scenario.staleness);
  const Round notice = static_cast<Round>(index.peers() - 1) * distance + 1;
  return linked_in + 3 * notice >= index.rounds();
}

void check_component(const TraceIndex& index, const Component& component, Checks& checks) {
  if (!index.protocol.algorithm->requirements().tolerates_peer_loss ||
      ended_unnoticed(index, component))
    return;
  const Quiescence quiet = quiescence_of(index, component);
  std::vector<int> peers;
  for (const int a : component) peers.push_back(index.peer_of(a));
  std::ranges::sort(peers);
  // Updates need time and rounds to reach all peers: they stay behind rows for which a peer has no
  // room yet.
  const Time known = std::max(quiet.since, faults_end(index.scenario)) +
                     index.peers() * settling_time(index.scenario, index.protocol);
  Time until = index.trace.end;
  for (const Incarnation& incarnation : index.trace.incarnations)
    if (incarnation.finished) until = std::min(until, incarnation.finished_at);
  for (const int a : component)
    for (const RoundRecord& record : index.incarnation(a).rounds)
      if (record.began >= known && record.began < until &&
          record.round >= quiet.from + static_cast<Round>(index.peers()))
        checks.expect(record.reachable == peers, "reachability",
                      "in round {} peer {} takes peers {} for reachable, and links join {}",
                      record.round, index.peer_of(a), fmt::join(record.reachable, ", "),
                      fmt::join(peers, ", "));
}

}  // namespace

/// A joining peer with links to running ones is admitted before these begin another round. It asks
/// one partner, and the next one only when that one is lost; a partner that has begun its last
/// round gives no rows.
void check_joins(const TraceIndex& index, Checks& checks) {
  for (int a = 0; a < index.incarnations(); ++a) {
    const Incarnation& joiner = index.incarnation(a);
    std::optional<Round> awaited = awaited_round(index, a);
    const bool admitted = joiner.joins && joiner.alive && !joiner.finished && !awaited;
    if (!awaited && !admitted) continue;
    if (index.scenario.open && awaited) {
      awaited = index.protocol.participants().next_round(joiner.peer, *awaited);
      if (!awaited && may_join_too_late(index, a)) continue;
    }
    Donors donors = donors_of(index, a);
    std::vector<int>& linked = donors.linked;
    const Time due = donors.due;
    // Of those that have not begun the round from which on it takes part, it waits for none.
    std::erase_if(linked, [&](int b) {
      return index.incarnation(b).rounds.back().round < awaited.value_or(0);
    });
    const auto gives_none = [&index, due](int b) {
      const Incarnation& donor = index.incarnation(b);
      const bool in_its_last =
          donor.rounds.back().round + 1 == index.rounds() && donor.rounds.back().began <= due;
      return in_its_last || (donor.finished && donor.finished_at <= due);
    };
    if (std::ranges::any_of(linked, gives_none)) continue;
    for (const int b : linked) {
      const RoundRecord& last = index.incarnation(b).rounds.back();
      checks.expect(admitted || last.began <= due, "termination",
                    "peer {} still waits to join, though peer {} has begun round {}", joiner.peer,
                    index.peer_of(b), last.round);
    }
  }
}

void check_reachability(const TraceIndex& index, Checks& checks) {
  for (const Component& component : components_of(index)) check_component(index, component, checks);
}

}  // namespace gossamer::simulator
