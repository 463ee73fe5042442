// Trials of sessions in virtual time, over connections that break, as the simulator runs one with
// each seed.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "simulator/session/session_trial.hpp"

using namespace gossamer::simulator;

TEST_CASE("what is sent arrives once, in order and unchanged, however connections break") {
  std::uint64_t frames = 0, breaks = 0, lost = 0;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const TrialReport report = try_session(seed);
    CAPTURE(seed);
    CHECK_MESSAGE(report.violations.empty(), fmt::format("{}", fmt::join(report.violations, "; ")));
    frames += report.frames;
    breaks += report.breaks;
    lost += report.lost ? 1 : 0;
    hashes.insert(report.hash);
    if (seed < 50) CHECK(try_session(seed).hash == report.hash);
  }
  MESSAGE(frames << " frames, " << breaks << " breaks, " << lost << " lost");
  CHECK(hashes.size() > 950);
  CHECK(frames > 50000);
  CHECK(breaks > 3000);
  CHECK(lost > 10);
  CHECK(lost < 200);
}
