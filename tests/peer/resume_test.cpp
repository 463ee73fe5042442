// Resumed runs have the same final hash, log and summary as runs that never stopped.
#include <algorithm>

#include "gossip/codec.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

RunRequest going_on(const std::string& from = "auto") {
  RunRequest request;
  request.resume = resume_choice(from);
  return request;
}

/// The records of a log, in an order that does not depend on the order of events, without values
/// that real clocks measured.
std::vector<Json> told(const Left& left) {
  std::vector<Json> records = left.log.records;
  for (Json& record : records)
    for (const char* measured : {"mix_seconds", "wait_seconds", "wall_seconds"})
      record.erase(measured);
  // A peer without a model records its rounds when the first message of the next one has arrived.
  for (Json& record : records)
    if (record.contains("current")) record.erase("bytes_received");
  const auto key = [](const Json& record) {
    return std::tuple(record.value("round", std::uint64_t{1} << 60),
                      record["record"].get<std::string>(),
                      record.value("peer", record.value("server", 0)));
  };
  std::ranges::stable_sort(records, [&](const Json& a, const Json& b) { return key(a) < key(b); });
  return records;
}

Json summed_up(const Left& left) {
  Json summary = left.summary;
  for (const char* measured : {"wall_seconds", "node_steps_per_second"}) summary.erase(measured);
  return summary;
}

void check_same(const Left& resumed, const Left& whole) {
  CHECK(resumed.hash() == whole.hash());
  CHECK(summed_up(resumed) == summed_up(whole));
  const auto here = told(resumed), there = told(whole);
  REQUIRE(here.size() == there.size());
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(here[i] == there[i]);
}

/// Runs to the end, and then again from each retained checkpoint.
void check_resumes(const fs::path& folder, const Overrides& overrides) {
  CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
  const Overrides base = overrides + Overrides{"checkpoint.every=3", "checkpoint.keep=9"};
  const Left whole = run_in(folder, base);
  CHECK_FALSE(whole.stopped);
  const auto names = checkpoints_in(folder / "checkpoints");
  REQUIRE(names.size() == 2);
  for (const CheckpointName& name : names) {
    turn_back(folder, name.round);
    check_same(run_in(folder, base, going_on()), whole);
  }
}

/// The codecs that the algorithm accepts.
std::vector<Overrides> codecs_for(const Overrides& algorithm) {
  std::vector<Overrides> fitting;
  for (const gossip::CodecKind& kind : gossip::codecs::catalog()) {
    const Overrides with = algorithm + Overrides{"codec.kind=" + kind.name};
    if (make_setup(configured(with)).ok()) fitting.push_back({"codec.kind=" + kind.name});
  }
  return fitting;
}

}  // namespace

TEST_CASE(
    "every algorithm with every codec that it accepts, SGD with momentum and Adam: a resumed run "
    "has the same final hash, log and summary") {
  const Folder folder;
  int made = 0, checked = 0;
  for (const Overrides& algorithm : algorithms_of_the_catalog()) {
    if (by_the_clock(algorithm)) continue;  // below
    const Overrides base =
        fitted(algorithm + Overrides{"run.peers=5", "run.rounds=8", "log.every=2"} +
               (trains(algorithm) ? Overrides{"data.batch=8"} : Overrides{}));
    for (const Overrides& codec : codecs_for(base))
      for (const Overrides& optimizer :
           {Overrides{"optimizer.momentum=0.5"}, Overrides{"optimizer.kind=adam"}}) {
        if (!make_setup(configured(base + codec + optimizer)).ok()) continue;
        if (!trains(algorithm) && optimizer.front() == "optimizer.kind=adam") continue;
        check_resumes(folder.path / std::to_string(made++), base + codec + optimizer);
        ++checked;
      }
  }
  CHECK(checked > 40);
}

TEST_CASE(
    "in a simulated network the clock of each node, noise, schedules and gaps in the log are "
    "resumed") {
  const Folder folder;
  int made = 0;
  const Overrides base{"run.peers=6", "run.rounds=8"};
  for (const Overrides& way :
       {Overrides{"sim.latency_ms=7", "sim.compute_ms=3", "sim.slow_peers=1", "sim.slow_factor=5"},
        Overrides{"sim.latency_ms=2", "algorithm.kind=allreduce", "log.every=0",
                  "topology.kind=complete"},
        Overrides{"algorithm.order=awc", "sim.latency_ms=4", "sim.compute_ms=3", "log.every=5"},
        Overrides{"optimizer.schedule=cosine", "optimizer.warmup_steps=4", "optimizer.kind=adamw",
                  "log.every=4"},
        Overrides{"optimizer.kind=muon", "model.kind=mlp", "model.hidden=[6, 5]", "log.every=4"},
        Overrides{"model.kind=linear", "data.kind=quadratic", "data.batch=4",
                  "data.gradient_noise=0.3", "log.every=4"},
        Overrides{"topology.kind=one_peer_exponential", "data.partition=label", "log.sketch=on"},
        Overrides{"mixing.rule=cs_plus", "topology.kind=complete", "sim.latency_ms=2"},
        Overrides{"mixing.rule=median", "algorithm.order=awc", "log.every=4"},
        Overrides{"algorithm.kind=push_sum", "topology.kind=star", "run.init=different"},
        Overrides{"algorithm.kind=fedavg", "algorithm.fraction=0.4", "algorithm.dropout=0.3",
                  "algorithm.prox=0.1", "log.every=3"},
        Overrides{"algorithm.kind=server", "algorithm.servers=3", "sim.compute_ms=2",
                  "log.every=4"}})
    check_resumes(folder.path / std::to_string(made++), base + way);
}

TEST_CASE(
    "checkpoints do not change results, nor does resuming with other threads, chunk sizes or row "
    "alignment") {
  const Folder folder;
  const Overrides base{"run.peers=4", "run.rounds=8", "optimizer.momentum=0.5", "log.every=3"};
  const Left plain = run_in(folder.path / "plain", base);
  const Left whole = run_in(folder.path / "run", base + Overrides{"checkpoint.every=2"});
  CHECK(whole.hash() == plain.hash());
  CHECK(told(whole) == told(plain));
  turn_back(folder.path / "run", 6);
  RunRequest request = going_on();
  request.row_offset = 1;
  const Overrides other{"checkpoint.every=2", "local.threads=3", "net.chunk_kib=4"};
  CHECK(run_in(folder.path / "run", base + other, request).hash() == plain.hash());
}

TEST_CASE("an interrupted run resumes after the round at which it stopped") {
  const Folder folder;
  int made = 0;
  for (const Overrides& way : {Overrides{}, Overrides{"sim.latency_ms=5", "sim.compute_ms=3"},
                               Overrides{"algorithm.kind=allreduce"}}) {
    const Overrides base =
        way + Overrides{"run.peers=5", "run.rounds=20", "log.every=4", "checkpoint.every=1000"};
    const Left whole = run_in(folder.path / std::to_string(made++), base);
    const fs::path here = folder.path / std::to_string(made++);
    int asked = 0;
    RunRequest request;
    request.interrupted = [&] { return ++asked >= 33; };
    const Left stopped = run_in(here, base, request);
    REQUIRE(stopped.stopped);
    const std::uint64_t round = stopped.summary["rounds"];
    REQUIRE(checkpoints_in(here / "checkpoints").size() == 1);
    CHECK(checkpoints_in(here / "checkpoints").front().round == round);
    check_same(run_in(here, base, going_on()), whole);
  }
}

TEST_CASE(
    "an asynchronous server and its workers resume from different rounds and finish with the same "
    "number of pushes") {
  const Folder folder;
  const fs::path here = folder.path / "run";
  const Overrides base{"run.peers=4",         "run.rounds=12",    "algorithm.kind=async_server",
                       "algorithm.servers=2", "sim.compute_ms=5", "sim.slow_peers=1",
                       "sim.slow_factor=3",   "sim.latency_ms=2", "checkpoint.every=5",
                       "checkpoint.keep=9",   "log.every=1"};
  const Left whole = run_in(here, base);
  turn_back(here, 5);
  const Left resumed = run_in(here, base, going_on());
  CHECK_FALSE(resumed.stopped);
  CHECK(resumed.summary["node_steps"] == whole.summary["node_steps"]);
  CHECK(resumed.records("round").size() == whole.records("round").size());
  std::uint64_t pushes = 0;
  for (const Json& record : resumed.records("server"))
    if (record.contains("staleness")) pushes += record["staleness"]["pushes"].get<std::uint64_t>();
  CHECK(pushes == 2 * 4 * 12);
  CHECK(resumed.summary["final"]["test_loss"]["max"] <
        resumed.records("round").front()["test_loss"]);
}

TEST_CASE(
    "AD-PSGD and asynchronous push-sum resume from each peer's round, with the same number of "
    "steps and an equally good result") {
  const Folder folder;
  const Overrides sums{"algorithm.kind=async_push_sum"};
  for (const Overrides& algorithm :
       {Overrides{"algorithm.kind=ad_psgd"}, sums + Overrides{"algorithm.policy=async"},
        sums + Overrides{"algorithm.policy=stale"}}) {
    CAPTURE(fmt::format("{}", fmt::join(algorithm, " ")));
    const Overrides base = algorithm + Overrides{"run.peers=6",       "run.rounds=40",
                                                 "sim.compute_ms=5",  "sim.compute_spread=0.3",
                                                 "sim.latency_ms=2",  "sim.slow_peers=1",
                                                 "sim.slow_factor=5", "checkpoint.every=10",
                                                 "checkpoint.keep=9", "log.every=1"};
    const fs::path here = folder.path / algorithm.back();
    const Left whole = run_in(here, base);
    CHECK_FALSE(whole.stopped);
    for (const gossip::Round round : {30, 10}) {
      turn_back(here, round);
      const Left resumed = run_in(here, base, going_on());
      CHECK_FALSE(resumed.stopped);
      CHECK(resumed.summary["node_steps"] == whole.summary["node_steps"]);
      CHECK(resumed.records("round").size() == whole.records("round").size());
      // All peers resume from the same round, so the slow one is less far behind than before.
      CHECK(resumed.summary["final"]["averaged_loss"].get<double>() <
            1.05 * whole.summary["final"]["averaged_loss"].get<double>());
    }
  }
}

TEST_CASE("runs under deadline, stale and async resume without the rows that were in flight") {
  const Folder folder;
  for (const std::string policy : {"async", "stale", "deadline"}) {
    CAPTURE(policy);
    const Overrides base{
        "run.peers=5",       "run.rounds=40",       fmt::format("algorithm.policy={}", policy),
        "sim.compute_ms=5",  "sim.latency_ms=2",    "sim.slow_peers=1",
        "sim.slow_factor=3", "checkpoint.every=20", "log.every=1"};
    const fs::path here = folder.path / policy;
    const Left whole = run_in(here, base);
    turn_back(here, 20);
    const Left resumed = run_in(here, base, going_on());
    CHECK_FALSE(resumed.stopped);
    CHECK(resumed.summary["rounds"] == 40);
    CHECK(resumed.records("round").size() == whole.records("round").size());
    CHECK(resumed.summary["final"]["averaged_loss"].get<double>() ==
          doctest::Approx(whole.summary["final"]["averaged_loss"].get<double>()).epsilon(0.05));
    CHECK(resumed.summary["node_steps"] >=
          190);  // of 200: under `deadline` a slow peer leaves rounds out
  }
}

TEST_CASE(
    "--resume auto uses the newest valid checkpoint and reports damaged ones; without any, the run "
    "starts at round 0") {
  const Folder folder;
  const fs::path here = folder.path / "run";
  const Overrides base{"run.peers=3", "run.rounds=9", "log.every=2", "checkpoint.every=4"};
  std::vector<std::string> said;
  RunRequest request = going_on();
  request.message = [&](const std::string& line) { said.push_back(line); };
  const Left whole = run_in(here, base, request);
  CHECK(said ==
        std::vector<std::string>{"there is no checkpoint to resume from: starting at round 0"});
  const auto names = checkpoints_in(here / "checkpoints");
  REQUIRE(names.size() == 2);
  for (std::size_t broken = 0; broken < 2; ++broken) {
    turn_back(here, 8);
    const std::string content = content_of(tensors_path(names[broken].manifest));
    written(tensors_path(names[broken].manifest), content.substr(1));
    said.clear();
    check_same(run_in(here, base, request), whole);
    REQUIRE(said.size() == 2);
    CHECK(said[0].starts_with(
        fmt::format("skipped the checkpoint of round {}: ", names[broken].round)));
    CHECK(said[1] == fmt::format("resuming from the checkpoint of round {}", broken == 0 ? 4 : 8));
    if (broken == 1) written(tensors_path(names[broken].manifest), content);
  }
  turn_back(here, 0);  // killed before its first checkpoint
  said.clear();
  check_same(run_in(here, base, request), whole);
  CHECK(said.size() == 1);
}

TEST_CASE("--resume none, a path, a folder, and paths that lead to no checkpoint") {
  const Folder folder;
  const fs::path here = folder.path / "run", store = here / "checkpoints";
  const Overrides base{"run.peers=3", "run.rounds=9", "log.every=2", "checkpoint.every=4"};
  const Left whole = run_in(here, base);
  const auto refused = [&](const fs::path& out, const Overrides& overrides,
                           const std::string& resume) {
    const Setup setup = set_up(base + overrides);
    RunRequest request = going_on(resume);
    request.folder = out;
    const auto outcome = run(setup, std::move(request));
    REQUIRE_FALSE(outcome.ok());
    return outcome.error().message;
  };
  CHECK(refused(here, {}, "none").find("--resume auto") != std::string::npos);
  CHECK(refused(folder.path / "new", {"checkpoint.folder=" + store.string()}, "none")
            .find("already contains checkpoints of a run") != std::string::npos);
  CHECK(refused(here, {"optimizer.rate=0.7"}, "auto")
            .find("optimizer.rate is 0.1 there and 0.7 here") != std::string::npos);
  CHECK(refused(here, {"run.id=other"}, "auto").find("its run_id is") != std::string::npos);
  CHECK(refused(here, {}, (folder.path / "nowhere").string())
            .find("there is no such folder or checkpoint") != std::string::npos);
  CHECK(refused(here, {}, folder.path.string())
            .find("no valid checkpoint there has the states of peers 0-2") != std::string::npos);

  // From the checkpoints of another folder: the log begins at that round.
  const std::string older = checkpoint_path(store, 4, 0).string();
  const Left branch = run_in(folder.path / "branch", base, going_on(older));
  CHECK(summed_up(branch) == summed_up(whole));
  CHECK(branch.records("round").front()["round"] == 4);
  CHECK(run_in(folder.path / "tensors", base, going_on(tensors_path(older).string())).hash() ==
        whole.hash());
  CHECK(run_in(folder.path / "newest", base, going_on(store.string()))
            .records("round")
            .front()["round"] == 8);

  // From its own checkpoints: later records are dropped and written again.
  check_same(run_in(here, base, going_on(older)), whole);
  CHECK(checkpoints_in(store).size() == 2);

  fs::remove_all(store);
  CHECK(refused(here, {}, "auto")
            .find("the log of a finished run, and there is no checkpoint to resume from") !=
        std::string::npos);
}

TEST_CASE("a run whose log is moved away ends with an error, and not with records missing") {
  const Folder folder;
  RunRequest request;
  request.folder = folder.path / "run";
  const fs::path log = request.folder / "log-0.jsonl";
  request.on_progress = [&](const Json& record) {
    if (record["round"] == 2) fs::rename(log, folder.path / "log-0.jsonl.1");
  };
  const Setup setup = set_up({"run.peers=3", "run.rounds=6", "log.every=1", "checkpoint.every=2"});
  const auto outcome = run(setup, request);
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().kind == ErrorKind::data);
  CHECK(outcome.error().message.find(log.string() + ": the file was removed") != std::string::npos);
  CHECK(outcome.error().message.ends_with("start again with --resume auto"));
}

TEST_CASE("a failed checkpoint is reported and does not end the run") {
  const Folder folder;
  const Overrides base{"run.peers=3", "run.rounds=6", "checkpoint.every=2",
                       "checkpoint.folder=" + written(folder.path / "file", "x")};
  std::vector<std::string> said;
  RunRequest request;
  request.message = [&](const std::string& line) { said.push_back(line); };
  const Left left = run_in(folder.path / "run", base, request);
  CHECK_FALSE(left.stopped);
  REQUIRE(said.size() == 3);
  CHECK(said.front().starts_with("there is no checkpoint of round 2: cannot create the folder "));
}
