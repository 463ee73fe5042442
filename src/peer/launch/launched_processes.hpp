// The processes that `gossamer launch` has started on this machine, ssh among them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/launch/launch_plan.hpp"

namespace gossamer::peer {

struct LaunchEvents {
  /// A line that process k has printed, without its end. What it returns is written to the same
  /// stream, output or error, of this process.
  std::function<std::string(std::size_t k, const std::string& line)> on_line;
  /// Process k has ended, with an exit code, or with 128 plus the number of the signal; `killed`:
  /// by a signal to the process of this machine, which may be ssh.
  std::function<void(std::size_t k, int code, bool killed)> on_end;
};

/// Starts the processes, and returns their exit codes once all have ended; the others go on when
/// one ends. The first and the second SIGINT or SIGTERM that this process receives go to all of
/// them; the third one kills those of this machine, and leaves a process behind an ssh as it is.
/// Interrupts are heard while the output is blocked too. Errors (data): a program cannot be
/// started; those that were started before it are ended as by an interrupt. Blocks SIGINT, SIGTERM
/// and SIGCHLD of the calling thread, which must be the only one, and ignores SIGPIPE, for good.
Result<std::vector<int>> run_processes(const std::vector<PlannedProcess>& planned,
                                       const LaunchEvents& events);

}  // namespace gossamer::peer
