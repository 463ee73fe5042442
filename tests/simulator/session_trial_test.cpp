// Sessions in virtual time, over connections that break: what gossamer simulate does with each
// seed.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "simulator/session/session_trial.hpp"

using namespace gossamer::net::sim;

TEST_CASE("what is said comes once, in order and unchanged, however connections break") {
  std::uint64_t frames = 0, breaks = 0, lost = 0;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const SessionVerdict verdict = try_session(seed);
    CAPTURE(seed);
    CHECK_MESSAGE(verdict.violations.empty(),
                  fmt::format("{}", fmt::join(verdict.violations, "; ")));
    frames += verdict.frames;
    breaks += verdict.breaks;
    lost += verdict.lost ? 1 : 0;
    hashes.insert(verdict.hash);
    if (seed < 50) CHECK(try_session(seed).hash == verdict.hash);
  }
  MESSAGE(frames << " frames, " << breaks << " breaks, " << lost << " lost");
  CHECK(hashes.size() > 950);
  CHECK(frames > 50000);
  CHECK(breaks > 3000);
  CHECK(lost > 10);
  CHECK(lost < 200);
}
