#include "simulator/world/disks.hpp"

#include <fmt/format.h>

#include <utility>

namespace gossamer::simulator {

Disks::Disks(std::unique_ptr<Storage> storage, int processes, TraceRecorder& recorder)
    : storage_(std::move(storage)),
      recorder_(recorder),
      acknowledged_(static_cast<std::size_t>(processes)) {}

void Disks::save(int process, const SavedState& state) {
  const SaveResult result = storage_->save(process, state);
  recorder_.add_to_hash(
      {static_cast<std::uint64_t>(process), state.round, static_cast<std::uint64_t>(result)});
  if (result == SaveResult::saved) acknowledged_[static_cast<std::size_t>(process)] = state.round;
  if (result == SaveResult::refused)
    recorder_.trace().errors.push_back(fmt::format(
        "process {} saved nothing of round {}, though its disk works", process, state.round));
}

std::vector<SavedState> Disks::load(int process, const std::vector<int>& hosted) {
  return recorder_.trace()
      .disks
      .emplace_back(DiskRecord{process, acknowledged_[static_cast<std::size_t>(process)],
                               storage_->load(process, hosted)})
      .found;
}

}  // namespace gossamer::simulator
