// The disks of a scenario's processes: their checkpoints and logs. They outlive a world, for a
// network that is stopped as a whole and resumes.
#pragma once

#include <map>
#include <memory>
#include <set>
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
  Round acknowledged(int process) const {
    const std::set<Round>& rounds = acknowledged_[static_cast<std::size_t>(process)];
    return rounds.empty() ? 0 : *rounds.rbegin();
  }

  /// Saves a peer's state. A disk fault may kill the process in it.
  void save(int process, const SavedState& state, TraceRecorder& recorder);
  /// What the process has saved, by round. What it finds newest goes into the trace.
  std::map<Round, std::vector<SavedState>> load(int process, const std::vector<int>& hosted,
                                                TraceRecorder& recorder);
  /// The process resumes from this round: what it saved and recorded of later rounds is gone.
  /// `absent`: those of its peers that do not count after the round.
  void resume_at(int process, const std::vector<int>& hosted, const std::vector<int>& absent,
                 Round round);

 private:
  void forget_after(int process, Round round);

  std::unique_ptr<Storage> storage_;
  std::vector<RunLog> logs_;  ///< by process
  /// By process: those whose states are on its disk. There are none of rounds in which its peers
  /// took no part.
  std::vector<std::set<Round>> acknowledged_;
};

}  // namespace gossamer::simulator
