// The simulator with the program's own checkpoints, on disks that fail at any call, end in the
// middle of one, and lose power.
#include "simulator/storage/simulated_disks.hpp"
#include "simulator/world/simulation.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;
using namespace gossamer::simulator;

namespace sim = gossamer::simulator;

namespace {

/// Six peers in four processes. Process 1 hosts two of them, writes a checkpoint every four rounds
/// and is restarted once.
Scenario scenario_of(const std::string& algorithm, std::vector<std::string> faults) {
  Scenario scenario;
  scenario.peers = 6;
  scenario.placement = {0, 1, 1, 2, 3, 3};
  scenario.algorithm = algorithm;
  scenario.lazy = true;
  scenario.rounds = 120;
  scenario.network.failure_timeout = 0.1;
  scenario.network.reconnect_delay = 0.02;
  scenario.checkpoint_every = 4;
  scenario.faults = std::move(faults);
  return scenario;
}

struct Found {
  gossip::Round acknowledged, found;
};

/// What process 1 finds at its restart, in a run in which the oracle finds nothing wrong.
Found found_after(SimulatedDisks& disks, const Scenario& scenario) {
  const Outcome outcome = simulate(scenario, disks.storage());
  CHECK(outcome.report.violations == std::vector<std::string>{});
  CHECK(outcome.joins == 2);
  CHECK(outcome.report.checked.at("durability") > 0);
  const Protocol protocol = build_protocol(scenario).value();
  const Trace trace = run_scenario(scenario, protocol, disks.storage());
  REQUIRE(trace.disks.size() == 2);
  const DiskRecord& first = trace.disks.front();
  return {first.acknowledged, first.found.empty() ? 0 : first.found.front().round};
}

}  // namespace

TEST_CASE(
    "whatever call of a simulated checkpoint fails, tears or is the last: what the disk "
    "acknowledged "
    "is found") {
  auto disks = SimulatedDisks::create();
  REQUIRE(disks.ok());
  const Found whole =
      found_after(**disks, scenario_of("dpsgd", {"reboot process=1 at=0.4 lasts=0.05"}));
  CHECK(whole.acknowledged >= 12);
  CHECK(whole.found == whole.acknowledged);
  int older = 0, unacknowledged = 0;
  for (int call = 0; call < 60; call += 3)
    for (const char* kind : {"failed_write", "torn_write"}) {
      CAPTURE(fmt::format("{} {}", kind, call));
      // The last checkpoint before the end fails, and sometimes the one before it.
      const Found struck = found_after(
          **disks, scenario_of("dpsgd", {fmt::format("{} process=1 at=0.32 amount={}", kind, call),
                                         "reboot process=1 at=0.4 lasts=0.05"}));
      older += struck.acknowledged < whole.acknowledged ? 1 : 0;
    }
  CHECK(older > 0);
  for (int call = 0; call < 40; ++call) {  // as many as it makes meanwhile
    CAPTURE(call);
    const Found killed = found_after(
        **disks,
        scenario_of("dpsgd",
                    {fmt::format("killed_write process=1 at=0.3 lasts=0.1 amount={}", call)}));
    unacknowledged +=
        killed.found > killed.acknowledged ? 1 : 0;  // its name was there, and was not acknowledged
    CHECK(killed.found <= killed.acknowledged + 4);
  }
  CHECK(unacknowledged > 0);
}

TEST_CASE("every algorithm that tolerates loss saves its states on simulated disks") {
  auto disks = SimulatedDisks::create();
  REQUIRE(disks.ok());
  for (const char* algorithm : {"consensus", "gradient_tracking", "d2", "extra", "qg_momentum",
                                "dmsgd", "decentlam", "push_sum", "push_pull"}) {
    CAPTURE(algorithm);
    const Found each =
        found_after(**disks, scenario_of(algorithm, {"restart process=1 at=0.4 lasts=0.05"}));
    CHECK(each.found >= 12);
  }
}

TEST_CASE("simulations leave nothing behind, and report a folder in which they cannot work") {
  const Folder folder;
  const std::string before = ::getenv("TMPDIR") == nullptr ? "" : ::getenv("TMPDIR");
  REQUIRE(::setenv("TMPDIR", folder.path.c_str(), 1) == 0);
  {
    auto disks = SimulatedDisks::create();
    REQUIRE(disks.ok());
    CHECK(found_after(**disks, scenario_of("dpsgd", {"reboot process=1 at=0.4 lasts=0.05"})).found >
          0);
  }
  CHECK(fs::is_empty(folder.path));
  REQUIRE(::setenv("TMPDIR", "/nowhere", 1) == 0);
  const auto none = SimulatedDisks::create();
  before.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message.find("TMPDIR") != std::string::npos);
}
