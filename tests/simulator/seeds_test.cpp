// The simulator with the program's own checkpoints, on disks that fail at any call, are left in the
// middle of one, and lose power.
#include "simulator/storage/simulated_disks.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace sim = gossamer::gossip::sim;

namespace {

/// Six peers in four processes, two of them in process 1, which writes a checkpoint every four
/// rounds and is started again once.
sim::Scenario scenario_of(const std::string& algorithm, std::vector<std::string> faults) {
  sim::Scenario scenario;
  scenario.peers = 6;
  scenario.homes = {0, 1, 1, 2, 3, 3};
  scenario.algorithm = algorithm;
  scenario.lazy = true;
  scenario.rounds = 120;
  scenario.silence = 0.1;
  scenario.call_again = 0.02;
  scenario.checkpoint_every = 4;
  scenario.faults = std::move(faults);
  return scenario;
}

struct Looked {
  gossip::Round said, found;
};

/// What process 1 finds when it is started again, once the oracle has found nothing wrong.
Looked looked(SimulatedDisks& disks, const sim::Scenario& scenario) {
  const sim::Outcome outcome = sim::simulate(scenario, disks.storage());
  CHECK(outcome.verdict.violations == std::vector<std::string>{});
  CHECK(outcome.joins == 2);
  CHECK(outcome.verdict.checked.at("disk") > 0);
  const sim::Parts parts = sim::build(scenario).value();
  const sim::Trace trace = sim::run_scenario(scenario, parts, disks.storage());
  REQUIRE(trace.disks.size() == 2);
  const sim::DiskRecord& first = trace.disks.front();
  return {first.said, first.found.empty() ? 0 : first.found.front().round};
}

}  // namespace

TEST_CASE(
    "whatever call of a simulated checkpoint fails, tears or is the last: what was said to be kept "
    "is found") {
  auto disks = SimulatedDisks::create();
  REQUIRE(disks.ok());
  const Looked whole =
      looked(**disks, scenario_of("dpsgd", {"reboot process=1 at=0.4 lasts=0.05"}));
  CHECK(whole.said >= 12);
  CHECK(whole.found == whole.said);
  int older = 0, unsaid = 0;
  for (int call = 0; call < 60; call += 3)
    for (const char* kind : {"failed_write", "torn_write"}) {
      CAPTURE(fmt::format("{} {}", kind, call));
      // The last checkpoint before the end is struck, and sometimes the one before it.
      const Looked struck = looked(
          **disks, scenario_of("dpsgd", {fmt::format("{} process=1 at=0.32 amount={}", kind, call),
                                         "reboot process=1 at=0.4 lasts=0.05"}));
      older += struck.said < whole.said ? 1 : 0;
    }
  CHECK(older > 0);
  for (int call = 0; call < 40; ++call) {  // as many as it makes in the time
    CAPTURE(call);
    const Looked killed = looked(
        **disks,
        scenario_of("dpsgd",
                    {fmt::format("killed_write process=1 at=0.3 lasts=0.1 amount={}", call)}));
    unsaid += killed.found > killed.said ? 1 : 0;  // its name was there, and nobody had been told
    CHECK(killed.found <= killed.said + 4);
  }
  CHECK(unsaid > 0);
}

TEST_CASE("every algorithm that bears losses keeps its states on simulated disks") {
  auto disks = SimulatedDisks::create();
  REQUIRE(disks.ok());
  for (const char* algorithm :
       {"consensus", "gradient_tracking", "d2", "extra", "qg_momentum", "push_sum"}) {
    CAPTURE(algorithm);
    const Looked each =
        looked(**disks, scenario_of(algorithm, {"restart process=1 at=0.4 lasts=0.05"}));
    CHECK(each.found >= 12);
  }
}

TEST_CASE("simulations leave nothing behind, and say where they cannot work") {
  const Folder folder;
  const std::string before = ::getenv("TMPDIR") == nullptr ? "" : ::getenv("TMPDIR");
  REQUIRE(::setenv("TMPDIR", folder.path.c_str(), 1) == 0);
  {
    auto disks = SimulatedDisks::create();
    REQUIRE(disks.ok());
    CHECK(looked(**disks, scenario_of("dpsgd", {"reboot process=1 at=0.4 lasts=0.05"})).found > 0);
  }
  CHECK(fs::is_empty(folder.path));
  REQUIRE(::setenv("TMPDIR", "/nowhere", 1) == 0);
  const auto none = SimulatedDisks::create();
  before.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message.find("TMPDIR") != std::string::npos);
}
