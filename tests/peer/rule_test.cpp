// Mixing rules in whole runs: bit-identical results, the same bytes as the mean, on an emulated GPU
// too, and the combinations that are refused.
#include "gossip/rule.hpp"
#include "peer/prediction/prediction.hpp"
#include "peer/setup/rule_check.hpp"
#include "tests/peer/cuda_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

std::string rule_refusal(const Overrides& overrides) {
  const auto setup = make_setup(configured(Overrides{"run.peers=9"} + overrides));
  return setup.ok() ? "" : setup.error().message;
}

/// Every rule of the catalog, and each choice of its parameters.
std::vector<Overrides> rules_of_the_catalog() {
  std::vector<Overrides> all;
  for (const gossip::RuleKind& kind : gossip::rules::catalog()) {
    all.push_back({"mixing.rule=" + kind.name});
    const Overrides rule = all.back();
    if (kind.name == "clipped") all.push_back(rule + Overrides{"mixing.radius=0.001"});
    for (const ParameterSpec& spec : kind.parameters)
      for (const std::string& choice : spec.notes.choices)
        if (ParameterValue(choice) != spec.default_value)
          all.push_back(rule + Overrides{"mixing." + spec.name + "=" + choice});
  }
  return all;
}

}  // namespace

TEST_CASE(
    "every rule: the bytes of the mean, and the same bits for any threads, chunks, alignment and "
    "latency") {
  const Folder folder;
  int made = 0;
  const auto left_by = [&](const Overrides& overrides, std::size_t row_offset = 0) {
    RunRequest request;
    request.row_offset = row_offset;
    return run_in(folder.path / std::to_string(made++), overrides, request);
  };
  for (const Overrides& algorithm :
       {Overrides{"algorithm.kind=dpsgd"}, Overrides{"algorithm.kind=dpsgd", "algorithm.order=awc"},
        Overrides{"algorithm.kind=qg_momentum"},
        Overrides{"algorithm.kind=consensus", "run.init=different"}}) {
    const Overrides base = algorithm + Overrides{"run.peers=9", "topology.kind=torus",
                                                 "run.rounds=4", "log.every=0", "local.threads=1"};
    const Left mean = left_by(base);
    std::set<std::string> hashes{mean.hash()};
    for (const Overrides& rule : rules_of_the_catalog()) {
      CAPTURE(fmt::format("{}", fmt::join(base + rule, " ")));
      const Left left = left_by(base + rule);
      // The adaptive radius of `clipped` leaves rows that are so near each other as they are.
      const bool as_mean =
          rule == Overrides{"mixing.rule=mean"} || rule == Overrides{"mixing.rule=clipped"};
      CHECK(hashes.insert(left.hash()).second != as_mean);
      CHECK(left.summary["bytes_sent"] == mean.summary["bytes_sent"]);
      const Overrides distant{"local.threads=3", "net.chunk_kib=4", "sim.latency_ms=3",
                              "sim.latency_spread=1", "sim.jitter_ms=5"};
      CHECK(left_by(base + rule + distant, 1).hash() == left.hash());
    }
  }
}

TEST_CASE("every rule: a run on emulated GPUs, one or several, has the bits of the CPU's") {
  const Folder folder;
  int made = 0;
  for (const Overrides& rule : rules_of_the_catalog()) {
    CAPTURE(fmt::format("{}", fmt::join(rule, " ")));
    const Overrides problem = rule + Overrides{"run.peers=9",  "topology.kind=torus",
                                               "run.rounds=4", "algorithm.kind=consensus",
                                               "log.every=0",  "algorithm.length=5000"};
    const std::string expected = run_in(folder.path / std::to_string(made++), problem).hash();
    for (const int gpus : {1, 3}) {
      const emulation::With with({.gpus = gpus});
      CHECK(run_in(folder.path / std::to_string(made++), problem + kOnGpu).hash() == expected);
    }
  }
}

TEST_CASE("every rule under every policy, where the rows that arrive late are left out") {
  const Folder folder;
  int made = 0;
  for (const Overrides& rule : rules_of_the_catalog())
    for (const char* policy : {"deadline", "stale", "async"}) {
      CAPTURE(fmt::format("{} {}", fmt::join(rule, " "), policy));
      const Overrides problem = rule + Overrides{"run.peers=9",
                                                 "topology.kind=torus",
                                                 "run.rounds=12",
                                                 "log.every=0",
                                                 std::string("algorithm.policy=") + policy,
                                                 "sim.latency_ms=2",
                                                 "sim.compute_ms=5",
                                                 "sim.slow_peers=1",
                                                 "sim.slow_factor=4"};
      const Left left = run_in(folder.path / std::to_string(made++), problem);
      CHECK_FALSE(left.stopped);
      for (const float value : left.row(8)) REQUIRE(std::isfinite(value));
      CHECK(run_in(folder.path / std::to_string(made++), problem).hash() == left.hash());
    }
}

TEST_CASE("a rule is refused where it has no effect or no guarantee, with an alternative") {
  const std::string median = "mixing.rule=median";
  CHECK(rule_refusal({median, "algorithm.kind=server"}) ==
        "mixing.rule: 'server' does not mix rows by W, so 'median' would have no effect; set "
        "mixing.rule = mean, or choose an algorithm that only mixes (dpsgd, qg_momentum, "
        "consensus)");
  for (const char* algorithm : {"gradient_tracking", "push_sum", "d2", "extra"}) {
    CAPTURE(algorithm);
    CHECK(rule_refusal({median, std::string("algorithm.kind=") + algorithm, "topology.lazy=true"})
              .find("conserves a sum over the peers, and 'median' conserves none") !=
          std::string::npos);
  }
  CHECK(rule_refusal({median, "algorithm.kind=choco"}).starts_with("mixing.rule: 'choco' "));
  CHECK(rule_refusal({median, "algorithm.kind=diloco", "topology.kind=complete"})
            .starts_with("mixing.rule: 'diloco' needs the exact means of W"));
  CHECK(rule_refusal({median, "codec.kind=int8"}) ==
        "codec.kind: 'int8' rounds the rows that 'median' compares; set codec.kind = none, or "
        "mixing.rule = mean");
  CHECK(rule_refusal({"mixing.rule=trimmed_mean"}) ==
        "mixing.hostile: to withstand 1 hostile neighbour, 'trimmed_mean' needs 3 neighbours of "
        "every peer, and on 'ring' peer 0 has 2 in round 0; set mixing.hostile = 0, which "
        "withstands none, or choose a topology with more neighbours (complete, torus)");
  CHECK(rule_refusal({"mixing.rule=median", "mixing.hostile=3", "topology.kind=torus"})
            .find("set mixing.hostile = 2, or choose") != std::string::npos);
  CHECK(rule_refusal({"mixing.rule=trimmed_mean", "mixing.hostile=0"}) == "");
  CHECK(rule_refusal({"mixing.rule=krum", "run.peers=1"}) == "");
  const std::string mixes_never =
      rule_refusal({"mixing.rule=geometric_median", "mixing.hostile=0", "topology.lazy=true"});
  CHECK(mixes_never ==
        "mixing.rule: 'geometric_median' of rows of which one weighs 1/2 or more is that row, and "
        "on 'ring' peer 0 weighs its own by 0.667 at least, so it would never mix; set "
        "topology.lazy = false, or choose a topology with more neighbours (complete, torus), or "
        "another rule");
  CHECK(rule_refusal({"mixing.rule=geometric_median", "mixing.hostile=0", "topology.kind=star"})
            .find("peer 1 weighs its own by 0.889 at least, so it would never mix; choose") !=
        std::string::npos);
  CHECK(rule_refusal({"mixing.rule=geometric_median", "run.peers=1"}) == "");
  for (const gossip::AlgorithmKind& kind : gossip::algorithms::catalog()) {
    CAPTURE(kind.name);
    const std::string refused = rule_refusal(
        fitted(Overrides{"run.peers=9", "algorithm.kind=" + kind.name}) + Overrides{median});
    const bool only_mixes = kind.name == "dpsgd" || kind.name == "qg_momentum" ||
                            kind.name == "dmsgd" || kind.name == "decentlam" ||
                            kind.name == "consensus";
    CHECK(refused.empty() == only_mixes);
    CHECK((only_mixes || refused.find("set mixing.rule = mean") != std::string::npos));
  }
}

TEST_CASE("the keys of a rule are checked, and are part of the shared configuration") {
  const auto refused = [](const Overrides& overrides) {
    const auto config = load_config("", overrides);
    return config.ok() ? std::string() : config.error().message;
  };
  CHECK(refused({"mixing.hostile=2"}) ==
        "--set mixing.hostile=2: mixing.hostile: unknown for rule mean; there are: rule");
  CHECK(refused({"mixing.rule=mode"})
            .starts_with("--set mixing.rule=mode: mixing.rule: there is no 'mode'; there are: "));
  CHECK(refused({"mixing.rule=krum", "mixing.hostile=-1"}).find("mixing.hostile") !=
        std::string::npos);
  CHECK(refused({"mixing.kind=krum"}).find("mixing.kind: unknown for rule mean") !=
        std::string::npos);
  CHECK(rule_refusal({"mixing.rule=ubar", "model.kind=external"})
            .starts_with("mixing.rule: 'ubar' measures losses of neighbours' rows"));
  CHECK(configured({"mixing.rule=krum"}).shared_hash() != configured({}).shared_hash());
  CHECK(configured({"mixing.rule=krum", "mixing.hostile=2"}).shared_hash() !=
        configured({"mixing.rule=krum"}).shared_hash());
}

TEST_CASE("a prediction says that a rule is not linear, and predicts the bytes of the mean") {
  const Overrides quadratic{"model.kind=linear", "data.kind=quadratic", "data.batch=0"};
  const Setup mean = set_up(quadratic),
              median = set_up(quadratic + Overrides{"mixing.rule=median"});
  const Prediction expected = predict(mean, 0.9), prediction = predict(median, 0.9);
  CHECK_FALSE(expected.consensus_distance.empty());
  CHECK(prediction.consensus_distance.empty());
  CHECK(prediction.bytes_sent == expected.bytes_sent);
  REQUIRE_FALSE(prediction.not_known.empty());
  CHECK(prediction.not_known.front().find("mixing rule 'median'") != std::string::npos);
  CHECK(prediction_json(median, prediction)["most_hostile_neighbours"] == 1);
  CHECK_FALSE(prediction_json(mean, expected).contains("most_hostile_neighbours"));
  CHECK(prediction_json(median, prediction)["hostile_weight_bound"] ==
        prediction.hostile->clipped.weight);
  CHECK(prediction_json(median, prediction)["cs_plus_weight_bound"] ==
        prediction.hostile->cs_plus.weight);
  CHECK_FALSE(prediction_json(mean, expected).contains("hostile_weight_bound"));
  for (const auto rule : {&theory::HostileBounds::clipped, &theory::HostileBounds::cs_plus})
    CHECK(prediction_text(median, prediction, 0)
              .find(hostile_bound_text(prediction.hostile, rule, *median.schedule)) !=
          std::string::npos);
  CHECK(prediction_text(median, prediction, 0)
            .find("1 hostile neighbour of each peer at most (median: peer 0 has 2 in round 0; "
                  "Fang, Yang "
                  "and Bajwa 2022 (BRIDGE-M); Yin et al. 2018); mixing.hostile = 1") !=
        std::string::npos);
  CHECK(prediction_text(mean, expected, 0).find("withstands") == std::string::npos);
}
