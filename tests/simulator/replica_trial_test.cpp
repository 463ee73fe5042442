// Trials of replicas that are lost and started again, as the simulator runs one with each seed.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "simulator/replica/replica_trial.hpp"

using namespace gossamer::simulator;

TEST_CASE("the workers of a replica that joins train the same steps, and nobody waits for ever") {
  std::uint64_t decisions = 0, returns = 0;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const ReplicaTrialReport report = try_replicas(seed);
    CAPTURE(seed);
    CHECK_MESSAGE(report.violations.empty(), fmt::format("{}", fmt::join(report.violations, "; ")));
    decisions += report.decisions;
    returns += report.returns;
    hashes.insert(report.hash);
    if (seed < 50) CHECK(try_replicas(seed).hash == report.hash);
  }
  MESSAGE(decisions << " decisions, " << returns << " returns");
  CHECK(hashes.size() > 250);  // without a restart, all train all steps
  CHECK(decisions > 100000);
  CHECK(returns > 300);
}
