// The program `gossamer`.
#include <malloc.h>

#include "cli/gossamer.hpp"

namespace {

/// Has the memory of large rows go back to the system as soon as they are no longer used. Once a
/// block of up to 32 MiB is free, the GNU C library by default keeps it, and its later blocks too:
/// beside a model of 16 MiB, 32 MiB between one evaluation and the next. Rounds of honest
/// peers allocate no rows, so a row of an evaluation may cost the faults of fresh pages.
void return_large_blocks() {
  constexpr int kLarge = 2 << 20;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, 8 * kLarge);
}

}  // namespace

int main(int argc, char** argv) {
  return_large_blocks();
  return gossamer::cli::run_gossamer(argc, argv);
}
