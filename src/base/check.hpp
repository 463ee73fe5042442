// Checks of invariants, enabled in every build. A failed check prints its place and reason and
// aborts the program.
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

/// Aborts when `condition` is false. For bugs only: no input of
/// a peer, a file or a user may make a check fail.
#define GOSSAMER_CHECK(condition, why)   \
  (static_cast<bool>(condition) ? void() \
                                : ::gossamer::check_failed(#condition, __FILE__, __LINE__, why))
