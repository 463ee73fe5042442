// The disks of a simulated world's processes: what each was asked to save, what it acknowledged and
// what was found again go into the trace.
#pragma once

#include <memory>
#include <vector>

#include "simulator/world/storage.hpp"
#include "simulator/world/trace_recorder.hpp"

namespace gossamer::simulator {

class Disks {
 public:
  /// `recorder` outlives the disks.
  Disks(std::unique_ptr<Storage> storage, int processes, TraceRecorder& recorder);

  Storage& storage() { return *storage_; }
  /// Saves a peer's state. A disk fault may kill the process in it.
  void save(int process, const SavedState& state);
  /// What the process has saved.
  std::vector<SavedState> load(int process, const std::vector<int>& hosted);

 private:
  std::unique_ptr<Storage> storage_;
  TraceRecorder& recorder_;
  std::vector<Round> acknowledged_;  ///< by process: the newest round whose states were saved
};

}  // namespace gossamer::simulator
