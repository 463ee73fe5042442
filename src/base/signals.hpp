// How a process was started to treat signals.
#pragma once

#include <signal.h>

namespace gossamer {

/// Whether the process ignores the signal now; at its start, whether what has started it wants
/// that, as nohup does with SIGHUP. Thread: any.
inline bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace gossamer
