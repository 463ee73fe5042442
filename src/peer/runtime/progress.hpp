// How far a run is, for people: one line rewritten on a terminal, a plain line every tenth of the
// way elsewhere. On stderr.
#pragma once

#include <chrono>
#include <cstdint>

#include "peer/storage/files.hpp"

namespace gossamer::peer {

class Progress {
 public:
  Progress(std::uint64_t rounds, bool quiet);
  /// `record`: a "round" or "network" record of the log.
  void show(const Json& record);
  /// Leaves the terminal's line clean.
  void end();

 private:
  std::uint64_t rounds_;
  bool quiet_, terminal_, line_shown_ = false;
  std::uint64_t tenth_ = 0;
  std::chrono::steady_clock::time_point begin_, last_shown_;
};

}  // namespace gossamer::peer
