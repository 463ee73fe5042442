// The log of a simulated process, as the program's Recorder and ResumedLog keep it: a process that
// is restarted drops the records of the rounds that it repeats, and appends to the others.
#pragma once

#include <set>
#include <vector>

#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

class RunLog {
 public:
  /// A record of a round that the log has from before it was resumed is dropped.
  void append(const LogRecord& record) {
    if (record.gap) gaps_.insert(record.peer);
    if (record.round < first_round_) return;
    records_.push_back({record.round, record.peer, gaps_.erase(record.peer) > 0});
  }
  /// Drops the records of `round` and later rounds. `joins`: the process joins a network that runs,
  /// and may resume from a later round when it is stopped before it has saved anything. `absent`:
  /// peers that do not count after `round` rounds, whose rounds before are not repeated.
  void resume_at(Round round, const std::vector<int>& peers, const std::vector<int>& absent,
                 bool joins) {
    std::erase_if(records_, [round](const LogRecord& record) { return record.round >= round; });
    first_round_ = round;
    if (cut_by_join_ && !joins) gaps_.insert(peers.begin(), peers.end());
    cut_by_join_ = joins;
    gaps_.insert(absent.begin(), absent.end());
  }
  const std::vector<LogRecord>& records() const { return records_; }

 private:
  std::vector<LogRecord> records_;
  Round first_round_ = 0;
  bool cut_by_join_ = false;
  std::set<int> gaps_;  ///< peers before whose next record others may be missing
};

}  // namespace gossamer::simulator
