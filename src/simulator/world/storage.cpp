#include "simulator/world/storage.hpp"

#include <utility>

namespace gossamer::gossip::sim {

void PerfectStorage::begin(int process, const std::vector<int>& hosted) {
  Place& place = places_[process];
  place.hosted = hosted.size();
  place.killed = false;
  place.pending.clear();
}

Kept PerfectStorage::save(int process, const SavedState& state) {
  Place& place = places_[process];
  if (place.killed) return Kept::no;
  if (const auto fault = std::exchange(place.struck, std::nullopt)) {
    place.killed = *fault == DiskFault::kill;
    place.pending.erase(state.round);
    return Kept::no;
  }
  auto& states = place.pending[state.round];
  states[state.peer] = state;
  if (states.size() < place.hosted) return Kept::not_yet;
  std::erase_if(place.rounds, [&](const auto& entry) { return entry.first > state.round; });
  place.rounds[state.round] = std::move(states);
  place.pending.erase(state.round);
  return Kept::yes;
}

std::vector<SavedState> PerfectStorage::find(int process, const std::vector<int>& hosted) {
  const auto& rounds = places_[process].rounds;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    if (round->second.size() != hosted.size()) continue;
    std::vector<SavedState> states;
    for (const auto& [peer, state] : round->second) states.push_back(state);
    return states;
  }
  return {};
}

void PerfectStorage::strike(int process, DiskFault fault, int) { places_[process].struck = fault; }
void PerfectStorage::relent(int process) { places_[process].struck.reset(); }
bool PerfectStorage::killed(int process) const {
  const auto found = places_.find(process);
  return found != places_.end() && found->second.killed;
}

}  // namespace gossamer::gossip::sim
