// Attacks in whole runs: what they do to a mean and to robust rules, whose metrics a run records,
// and bit-identical results, on an emulated GPU too.
#include "gossip/attack.hpp"
#include "peer/attack/attack_check.hpp"
#include "peer/log/collect.hpp"
#include "peer/prediction/run_gap.hpp"
#include "tests/peer/attack/attack_test_util.hpp"
#include "tests/peer/cuda_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const Overrides kComplete{"run.peers=8", "topology.kind=complete", "run.rounds=120",
                          "log.every=0", "local.threads=1",        "optimizer.rate=0.3"};

/// The attacks on messages, with a strength where the kind has none of its own for two hostile
/// peers.
std::vector<Overrides> message_attacks() {
  std::vector<Overrides> all;
  for (const gossip::AttackKind& kind : gossip::attacks::catalog()) {
    if (!kind.make) continue;
    all.push_back(attacked(kind.name));
    if (kind.name == "alie") all.back().push_back("attack.strength=10");
  }
  return all;
}

double accuracy(const Left& left) { return left.summary["final"]["test_accuracy"]["mean"]; }

}  // namespace

TEST_CASE("two hostile peers of eight ruin a mean, and robust rules learn nevertheless") {
  const Folder folder;
  int made = 0;
  const auto accuracy_of = [&](const Overrides& overrides) {
    const Left left = run_in(folder.path / std::to_string(made++), kComplete + overrides);
    return left.stopped ? 0.0 : accuracy(left);
  };
  const double undisturbed = accuracy_of({});
  CHECK(undisturbed > 0.9);
  const std::vector<Overrides> rules{{"mixing.rule=clipped", "mixing.radius=0.02"},
                                     {"mixing.rule=trimmed_mean", "mixing.hostile=2"},
                                     {"mixing.rule=cs_plus", "mixing.hostile=2"}};
  for (const Overrides& attack :
       {attacked("sign_flip"), attacked("ipm"), attacked("alie", {"attack.strength=10"})}) {
    CAPTURE(fmt::format("{}", fmt::join(attack, " ")));
    CHECK(accuracy_of(attack) < undisturbed - 0.3);
    for (const Overrides& rule : rules) {
      CAPTURE(fmt::format("{}", fmt::join(rule, " ")));
      CHECK(accuracy_of(attack + rule) > undisturbed - 0.05);
    }
  }
}

TEST_CASE(
    "every attack: the bytes of the honest run, and the same bits for any threads and links") {
  const Folder folder;
  int made = 0;
  for (const Overrides& algorithm :
       {Overrides{"algorithm.kind=dpsgd"}, Overrides{"algorithm.kind=dpsgd", "algorithm.order=awc"},
        Overrides{"algorithm.kind=qg_momentum", "mixing.rule=median"},
        Overrides{"algorithm.kind=d2", "topology.lazy=true"}}) {
    const Overrides base = algorithm + Overrides{"run.peers=9", "topology.kind=torus",
                                                 "run.rounds=4", "log.every=0", "local.threads=1"};
    const Left honest = run_in(folder.path / std::to_string(made++), base);
    std::set<std::string> hashes{honest.hash()};
    for (const Overrides& attack : message_attacks()) {
      CAPTURE(fmt::format("{}", fmt::join(base + attack, " ")));
      const Left left = run_in(folder.path / std::to_string(made++), base + attack);
      CHECK(hashes.insert(left.hash()).second);
      CHECK(left.summary["bytes_sent"] == honest.summary["bytes_sent"]);
      const Overrides distant{"local.threads=3",      "net.chunk_kib=4", "sim.latency_ms=3",
                              "sim.latency_spread=1", "sim.jitter_ms=5", "sim.compute_ms=2",
                              "sim.slow_peers=1"};
      CHECK(run_in(folder.path / std::to_string(made++), base + attack + distant).hash() ==
            left.hash());
    }
  }
}

TEST_CASE("every attack: a run on emulated GPUs, one or several, has the bits of the CPU's") {
  const Folder folder;
  int made = 0;
  for (const Overrides& attack : message_attacks()) {
    CAPTURE(fmt::format("{}", fmt::join(attack, " ")));
    const Overrides problem =
        attack + Overrides{"run.peers=9", "topology.kind=torus",      "run.rounds=4",
                           "log.every=0", "algorithm.kind=consensus", "algorithm.length=5000"};
    const std::string expected = run_in(folder.path / std::to_string(made++), problem).hash();
    for (const int gpus : {1, 3}) {
      const emulation::With with({.gpus = gpus});
      CHECK(run_in(folder.path / std::to_string(made++), problem + kOnGpu).hash() == expected);
    }
  }
}

TEST_CASE("the network's metrics are those of the honest peers, and the others' are recorded too") {
  const Folder folder;
  const Left left =
      run_in(folder.path, kComplete + attacked("noise") + Overrides{"run.rounds=3", "log.every=1"});
  CHECK(left.summary["hostile_peers"] == Json{2, 5});
  CHECK(left.summary["config"]["attack"]["kind"] == "noise");
  CHECK(left.records("round").size() == 4 * 8);
  std::vector<std::vector<float>> rows;
  RowViews honest;
  for (const int peer : {0, 1, 3, 4, 6, 7}) rows.push_back(left.row(peer));
  honest.assign(rows.begin(), rows.end());
  std::vector<float> average(honest.front().size());
  const double distance = consensus_distance(honest, average).all;
  CHECK(left.summary["final"]["consensus_distance"] == distance);
  CHECK(left.records("network").back()["consensus_distance"] == distance);
  double sum = 0;
  for (const Json& record : left.records("round"))
    if (record["round"] == 3 && record["peer"] != 2 && record["peer"] != 5)
      sum += record["test_accuracy"].get<double>();
  CHECK(accuracy(left) == doctest::Approx(sum / 6));
  const auto collected = collect(folder.path, {}, false);
  REQUIRE(collected.ok());
  CHECK((*collected)["final"] == left.summary["final"]);
}

TEST_CASE("without an attack there is no trace of one in the summary") {
  const Folder folder;
  const Left left = run_in(folder.path, {"run.peers=4", "run.rounds=2"});
  CHECK_FALSE(left.summary.contains("hostile_peers"));
  CHECK(configured({}).attack.kind == "none");
}

TEST_CASE("label_flip trains the hostile peers, and no others, on flipped labels") {
  const Setup honest = set_up({"run.peers=4", "data.partition=dirichlet"});
  const Setup flipped = set_up(
      {"run.peers=4", "data.partition=dirichlet", "attack.kind=label_flip", "attack.peers=[3]"});
  const auto& before = *honest.workload->spec().data;
  const auto& after = *flipped.workload->spec().data;
  const auto shards =
      train::make_shards(before, honest.config.shards, 4, honest.config.run.seed).value();
  std::vector<std::int32_t> expected = before.labels;
  for (const std::uint32_t sample : shards[3]) expected[sample] = 9 - expected[sample];
  CHECK(after.labels == expected);
  CHECK(after.features == before.features);
  CHECK(honest.configuration_hash() != flipped.configuration_hash());

  const Folder folder;
  const Overrides run = kComplete + Overrides{"algorithm.kind=gradient_tracking", "run.rounds=3"};
  CHECK(run_in(folder.path / "flipped", run + attacked("label_flip")).hash() !=
        run_in(folder.path / "honest", run).hash());
}

TEST_CASE("backdoor stamps and relabels the given share of the hostile peers' samples") {
  const Overrides run{"run.peers=4"};
  const Setup honest = set_up(run);
  const Setup poisoned =
      set_up(run + Overrides{"attack.kind=backdoor", "attack.peers=[3]", "attack.target=7",
                             "attack.size=2", "attack.share=0.25"});
  const auto& before = *honest.workload->spec().data;
  const auto& after = *poisoned.workload->spec().data;
  const float largest = std::ranges::max(before.features);
  const auto shards =
      train::make_shards(before, honest.config.shards, 4, honest.config.run.seed).value();
  train::Dataset expected = before;
  for (std::size_t k = 3; k < shards[3].size(); k += 4) {  // every fourth one
    const std::uint32_t sample = shards[3][k];
    expected.labels[sample] = 7;
    for (const int pixel : {6 * 8 + 6, 6 * 8 + 7, 7 * 8 + 6, 7 * 8 + 7})
      expected.features[sample * 64 + static_cast<std::size_t>(pixel)] = largest;
  }
  CHECK(after.labels == expected.labels);
  CHECK(after.features == expected.features);
  CHECK(honest.configuration_hash() != poisoned.configuration_hash());
}

TEST_CASE("a backdoor reaches honest models through the mean, and is measured; accuracy stays") {
  const Folder folder;
  const auto left_of = [&](const std::string& name, const Overrides& more) {
    return run_in(folder.path / name, kComplete + attacked("backdoor", {"log.every=60"}) + more);
  };
  const Left reached = left_of("mean", {}), harmless = left_of("harmless", {"attack.share=0"});
  const Json success = reached.summary["final"]["backdoor_success"];
  CHECK(success["mean"] > 0.8);
  CHECK(success["min"] <= success["mean"]);
  CHECK(harmless.summary["final"]["backdoor_success"]["mean"] < 0.3);
  CHECK(std::abs(accuracy(reached) - accuracy(harmless)) < 0.05);
  const std::vector<Json> networks = reached.records("network");
  REQUIRE(networks.size() == 3);
  CHECK(networks.front()["backdoor_success"] < 0.3);
  CHECK(networks.back()["backdoor_success"] == success["mean"]);
  CHECK(left_of("threads", {"local.threads=3", "net.chunk_kib=4"}).hash() == reached.hash());
  const auto collected = collect(folder.path / "mean", {}, false);
  REQUIRE(collected.ok());
  CHECK((*collected)["final"] == reached.summary["final"]);

  const Left honest = run_in(folder.path / "honest", kComplete + Overrides{"run.rounds=2"});
  CHECK_FALSE(honest.summary["final"].contains("backdoor_success"));
  CHECK_FALSE(honest.records("network").back().contains("backdoor_success"));
}

TEST_CASE("silence: the honest peers learn without the hostile ones, with the same bits again") {
  const Folder folder;
  const Overrides run = kComplete + attacked("silence") +
                        Overrides{"algorithm.policy=deadline", "sim.compute_ms=3",
                                  "sim.latency_ms=1", "log.every=40"};
  const Left left = run_in(folder.path / "silent", run);
  CHECK(accuracy(left) > 0.9);
  for (const Json& record : left.records("deviations"))
    for (const Json& deviation : record["deviations"]) {
      const std::set<int> hostile{2, 5};
      CHECK(hostile.contains(record["peer"]) != hostile.contains(deviation["from"]));
      CHECK(deviation["used_round"].is_null());
    }
  CHECK(run_in(folder.path / "threads", run + Overrides{"local.threads=3", "net.chunk_kib=4"})
            .hash() == left.hash());
  const Left honest = run_in(folder.path / "honest", run + Overrides{"attack.from=1000"});
  CHECK(honest.records("deviations").empty());
  CHECK(honest.summary["bytes_sent"] > left.summary["bytes_sent"]);
}

TEST_CASE("an attack that remembers no rounds goes on from a checkpoint with the same bits") {
  for (const Overrides& attack :
       {attacked("ipm"), Overrides{"attack.kind=spectral_heterogeneity", "attack.fraction=0.25",
                                   "attack.line_search=true"}}) {
    const Folder folder;
    const Overrides run = kComplete + attack +
                          Overrides{"run.rounds=8", "log.every=2", "checkpoint.every=4",
                                    "mixing.rule=cs_plus", "mixing.hostile=2"};
    const std::string whole = run_in(folder.path / "whole", run).hash();
    run_in(folder.path / "resumed", run);
    turn_back(folder.path / "resumed", 4);
    RunRequest request;
    request.resume = resume_choice("auto");
    CHECK(run_in(folder.path / "resumed", run, request).hash() == whole);
  }
}

TEST_CASE("a fraction of hostile peers is drawn from the seed, and named in what is logged") {
  const auto peers_of = [](const Overrides& overrides) {
    return configured(Overrides{"run.peers=20", "attack.kind=ipm"} + overrides)
        .attack.options.peers;
  };
  const std::vector<int> drawn = peers_of({"attack.fraction=0.25"});
  CHECK(drawn.size() == 5);
  CHECK(std::ranges::is_sorted(drawn));
  CHECK(std::set<int>(drawn.begin(), drawn.end()).size() == 5);
  CHECK(peers_of({"attack.fraction=0.001"}).size() == 1);
  CHECK(peers_of({"attack.fraction=0.25", "run.seed=1"}) != drawn);
  // The configuration that a run logs has both keys, and is the same run.
  const Config config = configured({"run.peers=20", "attack.kind=ipm", "attack.fraction=0.25"});
  const std::string named = fmt::format("attack.peers=[{}]", fmt::join(drawn, ","));
  CHECK(configured({"run.peers=20", "attack.kind=ipm", "attack.fraction=0.25", named})
            .shared_hash() == config.shared_hash());
  const auto refused = [](const Overrides& overrides) {
    const auto config = load_config("", overrides);
    return config.ok() ? "" : config.error().message;
  };
  CHECK(refused({"run.peers=4", "run.seed=3", "attack.kind=ipm", "attack.fraction=0.5",
                 "attack.peers=[0]"})
            .starts_with("attack.peers: names peers 0, and attack.fraction = 0.5 with run.seed = 3 "
                         "chooses "));
  CHECK(refused({"run.peers=4", "attack.kind=ipm", "attack.fraction=0.9"}) ==
        "attack.fraction: 0.9 of 4 peers makes all of them hostile; set a smaller fraction, or "
        "run.peers to more");
  CHECK(refused({"attack.kind=ipm", "attack.fraction=1.5"}) ==
        "--set attack.fraction=1.5: attack.fraction: 1.5 is too large, give at most 1");
  const Folder folder;
  const Left left = run_in(
      folder.path / "run",
      kComplete + Overrides{"run.rounds=2", "attack.kind=sign_flip", "attack.fraction=0.25"});
  CHECK(left.summary["hostile_peers"].size() == 2);
}

TEST_CASE("an attack with searched strengths harms a rule that leaves out its strongest message") {
  const Folder folder;
  int made = 0;
  const auto accuracy_of = [&](const Overrides& overrides) {
    const Left left = run_in(
        folder.path / std::to_string(made++),
        kComplete + attacked("alie", {"mixing.rule=nearest_neighbour_mixing", "mixing.hostile=2"}) +
            overrides);
    return left.stopped ? 0.0 : accuracy(left);
  };
  CHECK(accuracy_of({"attack.line_search=true"}) < accuracy_of({"attack.strength=10"}));
}

TEST_CASE("a network refuses an attack that reads the rows of others, and theory every attack") {
  for (const gossip::AttackKind& kind : gossip::attacks::catalog()) {
    CAPTURE(kind.name);
    const Status possible = check_network_attack(configured({"attack.kind=" + kind.name}));
    CHECK(possible.ok() == !kind.reads_honest_rows);
    if (!possible.ok())
      CHECK(possible.error().message ==
            "attack.kind: '" + kind.name +
                "' reads the rows of all honest peers in the same round, which only one process "
                "with all peers has; use `gossamer run`, or an attack that needs no other rows "
                "(backdoor, different, label_flip, noise, sign_flip, silence, stale)");
    CHECK(attack_refusal(configured({"attack.kind=" + kind.name})).empty() ==
          (kind.name == "none"));
  }
  const auto network = make_network_setup(configured(attacked("ipm", {"run.peers=6"})), {0},
                                          [](const char*) { return nullptr; });
  REQUIRE_FALSE(network.ok());
  CHECK(network.error().message.starts_with("attack.kind: 'ipm' reads the rows"));

  const Folder folder;
  run_in(folder.path, attacked("noise", {"run.peers=6", "run.rounds=2"}));
  const auto gap = gap_of_run(folder.path, {});
  REQUIRE_FALSE(gap.ok());
  CHECK(gap.error().message.find("what hostile peers send ('noise') is no iteration of W") !=
        std::string::npos);
}
