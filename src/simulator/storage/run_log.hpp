// The log of a simulated process, as the program's Recorder and ResumedLog keep it: a process that
// is restarted drops the records of the rounds that it repeats, and appends to the others.
#pragma once

#include <vector>

#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

class RunLog {
 public:
  void append(const LogRecord& record) { records_.push_back(record); }
  /// Drops the records of `round` and later rounds.
  void resume_at(Round round) {
    std::erase_if(records_, [round](const LogRecord& record) { return record.round >= round; });
  }
  const std::vector<LogRecord>& records() const { return records_; }

 private:
  std::vector<LogRecord> records_;
};

}  // namespace gossamer::simulator
