// Ends the program with a sentence on a processor that lacks the instructions that it was compiled
// for. This file is compiled for every x86-64 processor, and its check runs before all other code.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#ifdef GOSSAMER_CPU_LEVEL
namespace {

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(1);
}

__attribute__((constructor(101))) void check_processor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports(GOSSAMER_CPU_LEVEL)) return;
  say("gossamer: this program needs a processor of the level " GOSSAMER_CPU_LEVEL
      ", and this one lacks some of its instructions; build it for this machine with "
      "-DGOSSAMER_CPU=x86-64\n");
  _exit(2);
}

}  // namespace
#endif
