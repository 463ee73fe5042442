// The progress of a run on stderr: on a terminal, one line that is overwritten; elsewhere, a line
// after every tenth of the rounds.
#pragma once

#include <chrono>
#include <cstdint>

#include "peer/storage/files.hpp"

namespace gossamer::peer {

class Progress {
 public:
  Progress(std::uint64_t rounds, bool quiet);
  /// Shows the progress as of a "round" or "network" record of the log.
  void show(const Json& record);
  /// Clears the line on the terminal.
  void end();

 private:
  std::uint64_t rounds_;
  bool quiet_, terminal_, line_shown_ = false;
  std::uint64_t tenth_ = 0;
  std::chrono::steady_clock::time_point begin_, last_shown_;
};

}  // namespace gossamer::peer
