#include "simulator/world/storage.hpp"

#include <utility>

namespace gossamer::simulator {

void PerfectStorage::start(int process, const std::vector<int>& hosted) {
  ProcessDisk& disk = disks_[process];
  disk.hosted = hosted.size();
  disk.killed = false;
  disk.pending.clear();
}

SaveResult PerfectStorage::save(int process, const SavedState& state) {
  ProcessDisk& disk = disks_[process];
  if (disk.killed) return SaveResult::failed;
  if (const auto fault = std::exchange(disk.fault, std::nullopt)) {
    disk.killed = *fault == DiskFault::kill;
    disk.pending.erase(state.round);
    return SaveResult::failed;
  }
  auto& states = disk.pending[state.round];
  states[state.peer] = state;
  if (states.size() < disk.hosted) return SaveResult::pending;
  std::erase_if(disk.rounds, [&](const auto& entry) { return entry.first > state.round; });
  disk.rounds[state.round] = std::move(states);
  disk.pending.erase(state.round);
  return SaveResult::saved;
}

std::vector<SavedState> PerfectStorage::load(int process, const std::vector<int>& hosted) {
  const auto& rounds = disks_[process].rounds;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    if (round->second.size() != hosted.size()) continue;
    std::vector<SavedState> states;
    for (const auto& [peer, state] : round->second) states.push_back(state);
    return states;
  }
  return {};
}

void PerfectStorage::inject(int process, DiskFault fault, int) { disks_[process].fault = fault; }
void PerfectStorage::clear_fault(int process) { disks_[process].fault.reset(); }
bool PerfectStorage::killed(int process) const {
  const auto found = disks_.find(process);
  return found != disks_.end() && found->second.killed;
}

}  // namespace gossamer::simulator
