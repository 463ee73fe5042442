// Runs in one process: what their logs and summaries hold, and the ways in which they end.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "peer/log/collect.hpp"
#include "peer/log/topology_json.hpp"
#include "tests/peer/test_util.hpp"
#include "topology/kind.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// The last round in the log of each peer.
std::map<int, std::uint64_t> last_rounds(const Left& left) {
  std::map<int, std::uint64_t> last;
  for (const Json& record : left.records("round")) last[record["peer"]] = record["round"];
  return last;
}

}  // namespace

TEST_CASE("a resolved configuration repeats its run from any working directory") {
  const Folder folder;
  const Left first =
      run_in(folder.path / "first",
             {"run.peers=5", "run.rounds=4", "data.partition=dirichlet", "data.alpha=0.5",
              "optimizer.kind=adamw", "optimizer.schedule=cosine", "optimizer.warmup_steps=3"});
  auto config = load_config((folder.path / "first" / "resolved-0.toml").string(), {});
  REQUIRE(config.ok());
  const auto setup = make_setup(std::move(config).value());
  REQUIRE(setup.ok());
  const auto again = run(*setup, {.folder = folder.path / "again"});
  REQUIRE(again.ok());
  CHECK(again->summary["final_hash"] == first.hash());
  CHECK(again->summary["run_id"] == first.summary["run_id"]);
}

TEST_CASE(
    "an existing run is not overwritten, and neither is a file in the place of the run folder") {
  const Folder folder;
  const Overrides overrides{"run.peers=3", "run.rounds=1"};
  const std::string hash = run_in(folder.path / "run", overrides).hash();
  const Setup setup = set_up(overrides);
  const auto again = run(setup, {.folder = folder.path / "run"});
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().kind == ErrorKind::data);
  CHECK(again.error().message.find("already contains a run") != std::string::npos);
  CHECK(Json::parse(content_of(folder.path / "run" / "summary.json"))["final_hash"] == hash);
  const auto no_folder =
      run(setup, {.folder = fs::path(written(folder.path / "file", "x")) / "run"});
  REQUIRE_FALSE(no_folder.ok());
  CHECK(no_folder.error().message.find((folder.path / "file").string()) != std::string::npos);
}

TEST_CASE(
    "the metrics of the summary are those of the log's last round, also for a run of 0 rounds") {
  const Folder folder;
  for (const char* rounds : {"run.rounds=0", "run.rounds=7"}) {
    const Left left = run_in(folder.path / rounds, {"run.peers=4", rounds, "log.every=3"});
    CHECK(left.summary["reason"] == "finished");
    const Json last = left.records("network").back();
    const Json& final = left.summary["final"];
    CHECK(final["consensus_distance"] == last["consensus_distance"]);
    CHECK(final["averaged_accuracy"] == last["averaged_accuracy"]);
    CHECK(final["averaged_loss"] == last["averaged_loss"]);
    double loss = 0, bytes = 0;
    for (const Json& record : left.records("round"))
      if (record["round"] == last["round"]) {
        loss += record["test_loss"].get<double>() / 4;
        bytes += record["bytes_sent"].get<double>();
      }
    CHECK(final["test_loss"]["mean"].get<double>() == doctest::Approx(loss));
    CHECK(left.summary["bytes_sent"].get<double>() == bytes);
    CHECK(left.log.end()->at("bytes_sent").get<double>() == bytes);
    CHECK(final["train_loss"]["mean"].is_null() == (std::string(rounds) == "run.rounds=0"));
    CHECK(left.summary["node_steps"] == (std::string(rounds) == "run.rounds=0" ? 0 : 28));
  }
}

TEST_CASE("an interrupt ends all peers after the same round, with a complete log and a summary") {
  const Folder folder;
  const std::vector<Overrides> ways{
      {},
      {"sim.latency_ms=5", "sim.compute_ms=3"},
      {"algorithm.policy=async", "sim.latency_ms=5", "sim.compute_ms=3"},
      {"algorithm.kind=allreduce", "sim.latency_ms=1"},
      {"algorithm.order=awc", "sim.bandwidth_mbit_s=1"},
      {"algorithm.kind=centralized"}};
  int made = 0;
  for (const Overrides& way : ways)
    for (const int asked_at : {1, 2, 14, 23}) {
      CAPTURE(fmt::format("{} {}", fmt::join(way, " "), asked_at));
      int asked = 0;
      RunRequest request;
      request.interrupted = [&] { return ++asked >= asked_at; };
      const Left left =
          run_in(folder.path / std::to_string(made++),
                 way + Overrides{"run.peers=5", "run.rounds=40", "data.batch=4"}, request);
      REQUIRE(left.stopped);
      CHECK(left.stopped->kind == ErrorKind::interrupted);
      CHECK(left.summary["reason"] == "interrupted");
      CHECK(left.log.end()->at("reason") == "interrupted");
      const std::uint64_t rounds = left.summary["rounds"];
      CHECK(rounds >= 1);
      CHECK(rounds < 40);
      for (const auto& [peer, last] : last_rounds(left)) CHECK(last == rounds);
      CHECK(left.records("network").back()["round"] == rounds);
      CHECK_FALSE(left.summary["final"]["train_loss"]["mean"].is_null());
    }
}

TEST_CASE("an interrupted run is bit-identical to a shorter one") {
  const Folder folder;
  const Overrides base{"run.peers=4", "data.batch=4"};
  int asked = 0;
  RunRequest request;
  request.interrupted = [&] { return ++asked >= 10; };
  const Left left = run_in(folder.path / "interrupted", base + Overrides{"run.rounds=30"}, request);
  const std::uint64_t rounds = left.summary["rounds"];
  CHECK(run_in(folder.path / "short", base + Overrides{fmt::format("run.rounds={}", rounds)})
            .hash() == left.hash());
}

TEST_CASE(
    "a run that diverges reports it, and metrics that are not finite are null in its summary") {
  const Folder folder;
  const Left left =
      run_in(folder.path / "run",
             {"run.peers=4", "run.rounds=300", "log.every=1", "log.sketch=on",
              "optimizer.rate=3e38", "model.kind=linear", "data.kind=quadratic", "data.batch=4"});
  REQUIRE(left.stopped);
  CHECK(left.stopped->kind == ErrorKind::diverged);
  CHECK(static_cast<int>(left.stopped->kind) == 8);
  CHECK(left.stopped->message.find("3e+38") != std::string::npos);
  CHECK(left.summary["reason"] == "diverged");
  CHECK(left.log.end()->at("reason") == "diverged");
  CHECK(left.summary["rounds"] < 300);
  const Json& final = left.summary["final"];
  CHECK(final["test_loss"]["mean"].is_null());
  CHECK(final["test_loss"]["max"].is_null());
  CHECK(final["test_accuracy"]["mean"].is_null());
}

TEST_CASE("virtual time: latency, bandwidth and compute time add up, and do not change results") {
  const Folder folder;
  const Left left = run_in(
      folder.path / "run",
      {"run.peers=4", "run.rounds=10", "sim.latency_ms=20", "sim.compute_ms=5", "log.every=0"});
  CHECK(left.summary["virtual_seconds"].get<double>() == doctest::Approx(10 * 0.025));
  const Left slow =
      run_in(folder.path / "slow", {"run.peers=4", "run.rounds=10", "sim.compute_ms=5",
                                    "log.every=0", "sim.slow_peers=1", "sim.slow_factor=4"});
  CHECK(slow.summary["virtual_seconds"].get<double>() == doctest::Approx(10 * 0.02));
  CHECK(slow.hash() == left.hash());
  const Left served = run_in(folder.path / "served",
                             {"run.peers=4", "run.rounds=10", "sim.compute_ms=5", "log.every=0",
                              "algorithm.kind=server", "sim.downlink_mbit_s=1"});
  const double row = (650 * 4 + gossip::kFrameOverheadBytes) * 8 /
                     1e6;  // softmax on digits; the server takes in four of them
  CHECK(served.summary["virtual_seconds"].get<double>() ==
        doctest::Approx(10 * (0.005 + 4 * row + row)).epsilon(1e-6));
}

TEST_CASE(
    "virtual time by tables of regions: the slowest cycle of links determines the duration of a "
    "round") {
  const Folder folder;
  const Overrides base{"run.peers=4", "run.rounds=10", "log.every=0"};
  const std::string latencies = written(folder.path / "ms.csv", "1, 80\n60, 2\n");
  const std::string megabits = written(folder.path / "mbit.csv", "0 0\n0.5 0\n");
  const Left plain = run_in(folder.path / "plain", base);
  const Left far = run_in(folder.path / "far", base + Overrides{"sim.latency_file=" + latencies});
  // Peers 0 and 1 are in one region, 2 and 3 in the other. A row goes 0 → 3 in one round and 3 → 0
  // in the next, in 80 ms and 60 ms: the largest mean of a cycle (max-plus algebra).
  CHECK(far.summary["virtual_seconds"].get<double>() == doctest::Approx(5 * (0.08 + 0.06)));
  CHECK(far.hash() == plain.hash());
  const Left narrow =
      run_in(folder.path / "narrow", base + Overrides{"sim.bandwidth_file=" + megabits});
  const double row = (650 * 4 + gossip::kFrameOverheadBytes) * 8 /
                     0.5e6;  // softmax on digits; only one way is slow
  CHECK(narrow.summary["virtual_seconds"].get<double>() == doctest::Approx(row * 10).epsilon(0.02));
  CHECK(narrow.hash() == plain.hash());
}

TEST_CASE("deviations from W are in the log after their round, whatever log.every is") {
  const Folder folder;
  const Left left = run_in(folder.path / "async",
                           {"run.peers=4", "run.rounds=40", "log.every=0", "topology.kind=ring",
                            "algorithm.policy=async", "sim.compute_ms=10", "sim.slow_peers=1",
                            "sim.slow_factor=5", "sim.latency_ms=1"});
  std::map<int, std::set<std::uint64_t>> rounds;
  for (const Json& record : left.log.records) {
    if (record["record"] != "deviations") continue;
    CHECK(record["deviations"].size() <= 2);  // neighbours
    for (const Json& deviation : record["deviations"]) CHECK(deviation["round"] == record["round"]);
    CHECK(rounds[record["peer"]].insert(record["round"].get<std::uint64_t>()).second);
  }
  for (const auto& [peer, those] : rounds) {
    CHECK(those.size() >
          30);  // the slow peer has rows of others that are ahead, they have old ones of it
    CHECK(*those.rbegin() < 40);
  }
  CHECK(rounds.size() == 4);

  // A peer that left out many rounds writes several records of bounded length.
  const Setup setup = set_up({"run.peers=3", "run.rounds=5000"});
  auto recorder = Recorder::create(setup, {0, 1, 2}, folder.path / "many", "virtual");
  REQUIRE(recorder.ok());
  std::vector<gossip::Deviation> absent;
  for (gossip::Round round = 0; round < 2500; ++round) absent.push_back({round, 2, 0, true});
  REQUIRE((*recorder)->deviations({2500, 1, absent}).ok());
  std::vector<std::size_t> sizes;
  gossip::Round next = 0;
  GOSSAMER_CHECK(read_log(folder.path / "many" / "log-0.jsonl", 0,
                          [&](const ProcessLog&, Json&& record) {
                            sizes.push_back(record["deviations"].size());
                            for (const Json& deviation : record["deviations"])
                              CHECK(deviation["round"] == next++);
                          })
                     .ok(),
                 "a log that was just written");
  CHECK(sizes == std::vector<std::size_t>{1024, 1024, 452});
}

TEST_CASE("a log that cannot be written says how to go on: with checkpoints, by a resume") {
  const auto advice_with = [](const std::string& every) {
    const Folder folder;
    const Setup setup = set_up({"run.peers=3", "run.rounds=5", "checkpoint.every=" + every});
    auto recorder = Recorder::create(setup, {1}, folder.path / "run", "real");
    REQUIRE(recorder.ok());
    const FullDisk disk(0);
    RoundMetrics metrics;
    metrics.peer = 1;
    const Status failed = (*recorder)->round(metrics);
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().kind == ErrorKind::data);
    return failed.error().message;
  };
  CHECK(advice_with("2").ends_with(
      "; once that is mended (a full disk needs free space), start again with --resume auto"));
  CHECK(advice_with("0").ends_with(
      "; once that is mended (a full disk needs free space), remove the folder, which contains the "
      "records written so far, or choose another with --out, and start again"));
}

TEST_CASE("a server with the whole model is saved, and is not part of the network's metrics") {
  const Folder folder;
  const Overrides base{"run.peers=3", "run.rounds=4", "log.every=2"};
  const Left one = run_in(folder.path / "one", base + Overrides{"algorithm.kind=server"});
  std::vector<float> model;
  for (const Tensor& tensor : one.final.tensors)
    if (tensor.name.starts_with("server3."))
      model.insert(model.end(), tensor.values.begin(), tensor.values.end());
  CHECK(model == one.row(0));  // after its pull, a worker holds what the server does
  CHECK(one.summary["servers"] == 1);
  CHECK(one.summary["final"]["consensus_distance"] == 0);
  CHECK(one.summary["node_steps"] == 12);
  CHECK(one.records("server").size() == 3);
  const Left two =
      run_in(folder.path / "two", base + Overrides{"algorithm.kind=server", "algorithm.servers=2"});
  CHECK(two.hash() == one.hash());
  CHECK(two.final.tensors.size() == 2 * 3);
  CHECK(collect(folder.path / "two").ok());
}

TEST_CASE("federated averaging: a schedule counts the steps of a client's epochs") {
  const Setup setup =
      set_up({"run.peers=4", "run.rounds=10", "algorithm.kind=fedavg", "algorithm.local_epochs=3",
              "data.batch=16", "data.partition=dirichlet", "optimizer.schedule=cosine",
              "optimizer.rate=0.8"});
  for (int peer = 0; peer < 4; ++peer) {
    const std::uint64_t steps = 10 * 3 * setup.workload->trainer()->batches_per_epoch(peer);
    CHECK(setup.workload->trainer()->rate(peer, 0) == 0.8);
    CHECK(setup.workload->trainer()->rate(peer, steps / 2) == doctest::Approx(0.4));
    CHECK(setup.workload->trainer()->rate(peer, steps - 1) > 0);
    CHECK(setup.workload->trainer()->rate(peer, steps) == 0);
  }
}

TEST_CASE("thousands of peers start within two seconds") {
  const Setup setup = set_up({"run.peers=10000", "algorithm.kind=consensus", "algorithm.length=1"});
  CHECK(setup.report().spectral_gap ==
        doctest::Approx(2.0 / 3 * (1 - std::cos(2 * std::numbers::pi / 10000))));
  CHECK(setup.report().connected);
  CHECK(report_json(
            set_up({"run.peers=600", "algorithm.kind=consensus"}).report())["spectral_gap"] > 0);
  const Setup crowded =
      set_up({"run.peers=600", "algorithm.kind=consensus", "topology.kind=complete"});
  CHECK(edge_list(*crowded.schedule, crowded.report()).is_null());
}

TEST_CASE("log.every and log.last say which rounds have records") {
  const auto rounds = [](const char* every, const char* last) {
    const Folder folder;
    const Left left = run_in(
        folder.path, {"run.peers=2", "run.rounds=20", every, last, "algorithm.kind=consensus"});
    std::vector<int> logged;
    for (const Json& record : left.records("round"))
      if (record["peer"] == 1) logged.push_back(record["round"]);
    return logged;
  };
  CHECK(rounds("log.every=6", "log.last=1") == std::vector{0, 6, 12, 18, 20});
  CHECK(rounds("log.every=6", "log.last=3") == std::vector{0, 6, 12, 18, 19, 20});
  CHECK(rounds("log.every=0", "log.last=2") == std::vector{0, 19, 20});
  CHECK(rounds("log.every=0", "log.last=30").size() == 21);
}
