// Checks of our own invariants, on in every build: a bug stops the program with its place and
// reason, never silently.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace gossamer {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line,
                                      const char* why) {
  std::fprintf(stderr,
               "gossamer: internal error at %s:%d: %s (%s). Please report it with the command.\n",
               file, line, why, condition);
  std::abort();
}

}  // namespace gossamer

/// Aborts when `condition` is false. For bugs only: nothing that a peer, a file or a user can cause
/// may reach one.
#define GOSSAMER_CHECK(condition, why)   \
  (static_cast<bool>(condition) ? void() \
                                : ::gossamer::check_failed(#condition, __FILE__, __LINE__, why))
