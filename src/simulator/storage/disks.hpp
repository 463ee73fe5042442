// The disks of a scenario's processes: their checkpoints and logs. They outlive a world, for a
// network that is stopped as a whole and resumes.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "simulator/storage/run_log.hpp"
#include "simulator/storage/storage.hpp"
#include "simulator/world/trace_recorder.hpp"

namespace gossamer::simulator {

class Disks {
 public:
  Disks(std::unique_ptr<Storage> storage, int processes);

  Storage& storage() { return *storage_; }
  RunLog& log(int process) { return logs_[static_cast<std::size_t>(process)]; }
  /// The newest round whose states the process's disk has acknowledged; 0: none.
  Round acknowledged(int process) const { return acknowledged_[static_cast<std::size_t>(process)]; }

  /// Saves a peer's state. A disk fault may kill the process in it.
  void save(int process, const SavedState& state, TraceRecorder& recorder);
  /// What the process has saved, by round. What it finds newest goes into the trace.
  std::map<Round, std::vector<SavedState>> load(int process, const std::vector<int>& hosted,
                                                TraceRecorder& recorder);
  /// The process resumes from this round: what it saved and recorded of later rounds is gone.
  void resume_at(int process, const std::vector<int>& hosted, Round round);

 private:
  std::unique_ptr<Storage> storage_;
  std::vector<RunLog> logs_;         ///< by process
  std::vector<Round> acknowledged_;  ///< by process
};

}  // namespace gossamer::simulator
