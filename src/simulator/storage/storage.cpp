#include "simulator/storage/storage.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::simulator {

std::size_t PerfectStorage::counted(const std::vector<int>& hosted, Round round) const {
  // In an open run a peer that saved a state took part.
  return participants_.is_open() ? hosted.size()
                                 : participants_.counted_after(hosted, round).size();
}

void PerfectStorage::start(int process, const std::vector<int>& hosted) {
  ProcessDisk& disk = disks_[process];
  disk.hosted = hosted;
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
  if (states.size() < counted(disk.hosted, state.round)) return SaveResult::pending;
  std::erase_if(disk.rounds, [&](const auto& entry) { return entry.first > state.round; });
  disk.rounds[state.round] = std::move(states);
  disk.pending.erase(state.round);
  return SaveResult::saved;
}

std::map<Round, std::vector<SavedState>> PerfectStorage::load(int process,
                                                              const std::vector<int>& hosted) {
  std::map<Round, std::vector<SavedState>> found;
  for (const auto& [round, states] : disks_[process].rounds) {
    if (states.size() != counted(hosted, round)) continue;
    for (const auto& [peer, state] : states) found[round].push_back(state);
  }
  return found;
}

void PerfectStorage::resume_at(int process, const std::vector<int>&, Round round) {
  std::erase_if(disks_[process].rounds, [round](const auto& entry) { return entry.first > round; });
}

void PerfectStorage::inject(int process, DiskFault fault, int) { disks_[process].fault = fault; }
void PerfectStorage::clear_fault(int process) { disks_[process].fault.reset(); }
bool PerfectStorage::killed(int process) const {
  const auto found = disks_.find(process);
  return found != disks_.end() && found->second.killed;
}

}  // namespace gossamer::simulator
