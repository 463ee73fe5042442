#include "simulator/oracle/effective_participants.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "topology/participants/changing_schedule.hpp"

namespace gossamer::simulator {
namespace {

/// A peer takes part in the rounds that it leaves out between two others, also where only peers
/// began them that were apart from it and did not know of it. (One that leaves has no later round
/// in the same incarnation.)
void add_left_out(const Trace& trace, std::map<Round, std::vector<int>>& by_round, bool& apart) {
  for (const Incarnation& incarnation : trace.incarnations) {
    if (incarnation.rounds.empty()) continue;
    const auto end = by_round.upper_bound(incarnation.rounds.back().round);
    for (auto at = by_round.lower_bound(incarnation.rounds.front().round); at != end; ++at) {
      std::vector<int>& peers = at->second;
      const auto place = std::ranges::lower_bound(peers, incarnation.peer);
      if (place != peers.end() && *place == incarnation.peer) continue;
      peers.insert(place, incarnation.peer);
      apart = true;
    }
  }
}

}  // namespace

EffectiveProtocol effective_protocol(const Scenario& scenario, const Trace& trace) {
  EffectiveProtocol effective{build_protocol(scenario).value()};
  std::map<Round, std::vector<int>> by_round;
  for (const Incarnation& incarnation : trace.incarnations)
    for (const RoundRecord& record : incarnation.rounds) {
      std::vector<int>& known = by_round[record.round];
      effective.apart = effective.apart || (!known.empty() && known != record.participants);
      std::vector<int> all;
      std::ranges::set_union(known, record.participants, std::back_inserter(all));
      known = std::move(all);
    }
  add_left_out(trace, by_round, effective.apart);
  auto schedule = effective.protocol.schedule->copy_if_open();
  std::vector<topology::ParticipantChange> changes;
  std::vector<int> last = schedule->participants().at(0).peers;
  for (const auto& [round, peers] : by_round) {
    if (peers == last) continue;
    changes.push_back({round, peers});
    last = peers;
  }
  schedule->set_changes(changes);
  effective.protocol.schedule = std::move(schedule);
  return effective;
}

}  // namespace gossamer::simulator
