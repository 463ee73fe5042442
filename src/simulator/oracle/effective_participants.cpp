#include "simulator/oracle/effective_participants.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "topology/participants/changing_schedule.hpp"

namespace gossamer::simulator {

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
