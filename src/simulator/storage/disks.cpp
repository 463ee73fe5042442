#include "simulator/storage/disks.hpp"

#include <fmt/format.h>

#include <utility>

namespace gossamer::simulator {

Disks::Disks(std::unique_ptr<Storage> storage, int processes)
    : storage_(std::move(storage)),
      logs_(static_cast<std::size_t>(processes)),
      acknowledged_(static_cast<std::size_t>(processes)) {}

void Disks::save(int process, const SavedState& state, TraceRecorder& recorder) {
  const SaveResult result = storage_->save(process, state);
  recorder.add_to_hash(
      {static_cast<std::uint64_t>(process), state.round, static_cast<std::uint64_t>(result)});
  if (result == SaveResult::saved) {
    forget_after(process, state.round);
    acknowledged_[static_cast<std::size_t>(process)].insert(state.round);
  }
  if (result == SaveResult::refused)
    recorder.trace().errors.push_back(fmt::format(
        "process {} saved nothing of round {}, though its disk works", process, state.round));
}

std::map<Round, std::vector<SavedState>> Disks::load(int process, const std::vector<int>& hosted,
                                                     TraceRecorder& recorder) {
  std::map<Round, std::vector<SavedState>> found = storage_->load(process, hosted);
  recorder.trace().disks.push_back(
      {process, acknowledged(process),
       found.empty() ? std::vector<SavedState>() : found.rbegin()->second});
  // A disk keeps the newest states only.
  std::set<Round>& acknowledged = acknowledged_[static_cast<std::size_t>(process)];
  acknowledged.clear();
  for (const auto& [round, states] : found) acknowledged.insert(round);
  return found;
}

void Disks::resume_at(int process, const std::vector<int>& hosted, const std::vector<int>& absent,
                      Round round) {
  forget_after(process, round);
  if (round > 0) storage_->resume_at(process, hosted, round);
  log(process).resume_at(round, hosted, absent, false);
}

void Disks::forget_after(int process, Round round) {
  std::set<Round>& acknowledged = acknowledged_[static_cast<std::size_t>(process)];
  acknowledged.erase(acknowledged.upper_bound(round), acknowledged.end());
}

}  // namespace gossamer::simulator
