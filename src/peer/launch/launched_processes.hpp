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
  /// These processes have not ended, though they were asked to. What it returns is written to the
  /// error stream.
  std::function<std::string(const std::vector<std::size_t>& running)> on_wait;
};

/// Starts the processes, and returns their exit codes once all have ended; the others go on when
/// one ends. The first SIGINT, SIGTERM, SIGHUP or SIGQUIT that this process receives sends SIGTERM
/// to all of them. If some have not ended 10 s later, or at a second signal, which sends SIGTERM
/// again, `on_wait` names them. A further signal kills those of this machine, also stopped ones,
/// and leaves a process behind an ssh as it is. Signals are noticed while the output is blocked
/// too: the third one always kills. Errors (data): a program cannot be started; those that were
/// started before it are ended as by an interrupt. Blocks these signals and SIGCHLD of the calling
/// thread, which must be the only one, and ignores SIGPIPE, for good. SIGHUP and SIGQUIT do nothing
/// where this process was started with them ignored, as by nohup.
Result<std::vector<int>> run_processes(const std::vector<PlannedProcess>& planned,
                                       const LaunchEvents& events);

}  // namespace gossamer::peer
