// What becomes of the records and checkpoints of a process that has to start in an earlier round
// than it had reached.
#include <algorithm>

#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/runtime/startup.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

TEST_CASE(
    "a process that joins a network which is behind keeps its checkpoints until it has written "
    "another") {
  const Folder folder;
  const Overrides base{"run.peers=3", "run.rounds=20", "checkpoint.every=4", "checkpoint.keep=9"};
  run_in(folder.path, base);
  for (const char* name : {"final-0.safetensors", "summary.json"}) fs::remove(folder.path / name);
  const Setup setup = set_up(base);
  std::vector<std::string> messages;
  auto startup =
      Startup::prepare(setup, {{0, 1, 2},
                               folder.path,
                               resume_choice("auto"),
                               Host::Clock::virtual_time,
                               [&](const std::string& line) { messages.push_back(line); }});
  REQUIRE_MESSAGE(startup.ok(), (startup.ok() ? "" : startup.error().message));
  CHECK(checkpoints_in(folder.path / "checkpoints").front().round == 20);
  const auto rounds = [&] {
    std::vector<gossip::Round> found;
    for (const CheckpointName& name : checkpoints_in(folder.path / "checkpoints"))
      found.push_back(name.round);
    return found;
  };
  REQUIRE(startup->join_at(9).ok());
  CHECK(rounds() == std::vector<gossip::Round>{20, 16, 12, 8, 4});
  const auto states =
      find_states(setup, folder.path / "checkpoints", {0, 1, 2}, 8, [](const std::string&) {});
  REQUIRE(states.ok());
  for (const SavedStates::Node& node : states->at(8).nodes) {
    const std::vector<std::vector<float>> rows(setup.algorithm->rows(*setup.schedule).size(),
                                               std::vector<float>(setup.parameters));
    NodeSnapshot snapshot{
        .round = 12, .wall_seconds = 1, .state = node.state, .rows = {rows.begin(), rows.end()}};
    REQUIRE(startup->checkpointer()->add(std::move(snapshot)).ok());
    CHECK(rounds().front() == (node.state.node < 2 ? 20 : 12));
  }
  CHECK(rounds() == std::vector<gossip::Round>{12, 8, 4});
  // What the network made this process leave is kept beside: the checkpoints of 16 and 20, and the
  // records of round 6 on (three nodes may start in rounds that are three apart).
  for (const int round : {16, 20})
    for (const char* kind : {"json", "safetensors"})
      CHECK(fs::exists(folder.path / "checkpoints" /
                       fmt::format("round-{:08}-0.{}.aside", round, kind)));
  const std::string aside = read_file(folder.path / "log-0.jsonl.aside", 1 << 30).value();
  CHECK(aside.find("\"round\":20") != std::string::npos);
  CHECK(aside.find("\"round\":5,") == std::string::npos);
  CHECK(read_file(folder.path / "log-0.jsonl", 1 << 30).value().find("\"round\":20,") ==
        std::string::npos);
  CHECK(std::ranges::any_of(messages, [&](const std::string& line) {
    return line.ends_with("are set aside in " + (folder.path / "log-0.jsonl.aside").string());
  }));
}

TEST_CASE(
    "a process that starts at round 0, because another process has no checkpoint, keeps its "
    "checkpoints") {
  const Folder folder;
  const Overrides base{"run.peers=3", "run.rounds=8", "checkpoint.every=4"};
  run_in(folder.path, base);
  turn_back(folder.path, 8);
  const Setup setup = set_up(base);
  for (const gossip::Round round : {0, 4}) {
    auto startup = Startup::prepare(setup, {{0, 1, 2},
                                            folder.path,
                                            resume_choice("auto"),
                                            Host::Clock::virtual_time,
                                            [](const std::string&) {}});
    REQUIRE_MESSAGE(startup.ok(), (startup.ok() ? "" : startup.error().message));
    CHECK(startup->rounds() == std::vector<gossip::Round>{0, 4, 8});
    gossip::VirtualScheduler scheduler;
    gossip::InlineExecutor executor;
    HostRequest request;
    request.hosted = {0, 1, 2};
    Host host(setup, scheduler, executor, startup->recorder(), request);
    REQUIRE(startup->restore(round, host).ok());
    CHECK(checkpoints_in(folder.path / "checkpoints").size() == (round == 0 ? 2 : 1));
  }
}
