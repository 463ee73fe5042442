// Predictions against the results of the runs.
#include "peer/prediction/prediction.hpp"

#include <cmath>

#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// Heterogeneous quadratics, condition number 10, full gradients, step 0.2/L.
const Overrides kQuadratic{"run.peers=16",      "model.kind=linear",    "data.kind=quadratic",
                           "data.condition=10", "data.heterogeneity=1", "data.batch=0",
                           "data.dimension=8",  "optimizer.rate=0.2",   "local.threads=1"};

Prediction predicted(const Overrides& overrides) { return predict(set_up(overrides), 0.9); }

/// A run and its prediction, point by point.
struct Compared {
  std::vector<double> measured_consensus, measured_distance;
  Prediction prediction;
};

Compared compare(const Overrides& overrides) {
  const Folder folder;
  Compared compared;
  const Left left = run_in(folder.path / "run", overrides);
  CHECK_FALSE(left.stopped);
  compared.prediction = predicted(overrides);
  for (const Json& record : left.records("network")) {
    compared.measured_consensus.push_back(record["consensus_distance"]);
    compared.measured_distance.push_back(
        record["distance_to_optimum"].is_null() ? -1 : record["distance_to_optimum"].get<double>());
  }
  REQUIRE(compared.prediction.consensus_distance.size() == compared.measured_consensus.size());
  return compared;
}

/// The difference is within `tolerance`, or within the rounding of float32.
void check_close(const std::vector<double>& measured, const std::vector<double>& predicted,
                 double tolerance, double floor) {
  REQUIRE(predicted.size() == measured.size());
  for (std::size_t i = 0; i < measured.size(); ++i) {
    CAPTURE(i);
    CAPTURE(measured[i]);
    CAPTURE(predicted[i]);
    CHECK(std::abs(measured[i] - predicted[i]) <= tolerance * predicted[i] + floor);
  }
}

}  // namespace

TEST_CASE("D-PSGD ends within 2 % of its predicted fixed point") {
  const Folder folder;
  int made = 0;
  for (const char* order : {"atc", "awc"})
    for (const char* kind : {"ring", "torus", "exponential", "complete", "one_peer_exponential"}) {
      const Overrides overrides =
          kQuadratic + Overrides{std::string("topology.kind=") + kind,
                                 std::string("algorithm.order=") + order, "data.dimension=20",
                                 "run.rounds=803", "log.every=0"};
      CAPTURE(kind);
      CAPTURE(order);
      const Prediction prediction = predicted(overrides);
      REQUIRE(prediction.limit);
      CHECK(*prediction.rate < 1);
      const Json final = run_in(folder.path / std::to_string(made++), overrides).summary["final"];
      const double distance = final["distance_to_optimum"], consensus = final["consensus_distance"];
      CHECK(std::abs(distance - prediction.limit->optimum) <=
            0.02 * prediction.limit->optimum + 1e-6);
      CHECK(std::abs(consensus - prediction.limit->consensus) <=
            0.02 * prediction.limit->consensus + 1e-6);
      const bool exact = std::string(kind) == "complete" && std::string(order) == "atc";
      CHECK((prediction.limit->optimum == 0) == exact);
    }
}

TEST_CASE(
    "the first two hundred rounds of every algorithm that is a linear iteration are predicted "
    "within a thousandth") {
  const std::vector<Overrides> algorithms{
      {"algorithm.kind=dpsgd"},
      {"algorithm.kind=dpsgd", "algorithm.order=awc", "algorithm.local_steps=3",
       "optimizer.rate=0.1"},
      {"algorithm.kind=dpsgd", "optimizer.momentum=0.5", "optimizer.nesterov=true",
       "optimizer.weight_decay=0.1"},
      {"algorithm.kind=dpsgd", "optimizer.momentum=0.8", "optimizer.schedule=cosine",
       "optimizer.warmup_steps=20"},
      {"algorithm.kind=gradient_tracking"},
      {"algorithm.kind=gradient_tracking", "algorithm.order=awc", "optimizer.rate=0.05"},
      {"algorithm.kind=gradient_tracking", "optimizer.rate=0.05", "optimizer.momentum=0.5"},
      {"algorithm.kind=d2", "topology.lazy=true"},
      {"algorithm.kind=d2", "topology.lazy=true", "data.different_hessians=true",
       "optimizer.momentum=0.3"},
      {"algorithm.kind=extra"},
      {"algorithm.kind=extra", "data.different_hessians=true", "optimizer.weight_decay=0.1"},
      {"algorithm.kind=qg_momentum", "algorithm.momentum=0.7", "optimizer.rate=0.1"},
      {"algorithm.kind=qg_momentum", "algorithm.nesterov=true", "optimizer.rate=0.1",
       "optimizer.weight_decay=0.1"},
      {"algorithm.kind=dmsgd", "algorithm.momentum=0.7", "optimizer.rate=0.1",
       "optimizer.weight_decay=0.1"},
      {"algorithm.kind=decentlam", "algorithm.momentum=0.7", "optimizer.rate=0.1",
       "optimizer.schedule=step", "optimizer.milestones=[50]"},
      {"algorithm.kind=push_sum", "algorithm.local_steps=2", "optimizer.momentum=0.5",
       "optimizer.weight_decay=0.1"},
      {"algorithm.kind=push_sum", "data.different_hessians=true"},
      {"algorithm.kind=push_pull", "optimizer.rate=0.05"},
      {"algorithm.kind=push_pull", "data.different_hessians=true", "optimizer.rate=0.05"},
      {"algorithm.kind=dpsgd", "data.different_hessians=true"},
      {"algorithm.kind=dpsgd", "data.kind=linear", "data.dimension=8"},
      {"algorithm.kind=allreduce"},
      {"algorithm.kind=centralized", "optimizer.momentum=0.5"}};
  for (const Overrides& algorithm : algorithms)
    for (const std::string kind :
         {"ring", "exponential", "one_peer_exponential", "star", "random_matching"}) {
      const bool leans = kind == "star" &&  // out-degree weights
                         (algorithm.front() == "algorithm.kind=push_sum" ||
                          algorithm.front() == "algorithm.kind=push_pull");
      if ((kind == "star" || kind == "random_matching") && &algorithm != &algorithms.front() &&
          !leans)
        continue;
      Overrides overrides = kQuadratic +
                            Overrides{"topology.kind=" + kind, "run.rounds=200", "log.every=10"} +
                            algorithm;
      // centralized has one model, which starts where peer 0's would.
      const bool starts_apart = algorithm.front() != "algorithm.kind=allreduce";
      if (starts_apart) overrides.push_back("run.init=different");
      CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
      if (const auto setup = make_setup(configured(overrides)); !setup.ok()) {
        CHECK(setup.error().message.find("needs a symmetric W that is the same in every round") !=
              std::string::npos);
        continue;
      }
      const Compared compared = compare(overrides);
      check_close(compared.measured_distance, compared.prediction.distance_to_optimum, 1e-3, 2e-5);
      if (starts_apart)
        check_close(compared.measured_consensus, compared.prediction.consensus_distance, 1e-3,
                    2e-5);
    }
}

TEST_CASE("tracking, D² and EXTRA converge at the spectral radius of their iteration") {
  for (const Overrides& algorithm :
       {Overrides{"algorithm.kind=gradient_tracking"},
        Overrides{"algorithm.kind=d2", "topology.lazy=true"}, Overrides{"algorithm.kind=extra"}}) {
    CAPTURE(algorithm.front());
    const Compared compared = compare(
        kQuadratic + algorithm +
        Overrides{"topology.kind=torus", "data.dimension=3", "run.rounds=400", "log.every=200"});
    REQUIRE(compared.prediction.rate);
    CHECK(compared.prediction.limit->optimum == 0);
    const double slope =
        std::pow(compared.measured_distance[2] / compared.measured_distance[1], 1.0 / 200);
    CHECK(slope == doctest::Approx(*compared.prediction.rate).epsilon(5e-4));
  }
}

TEST_CASE("a step size that is predicted to be unstable diverges") {
  const Overrides overrides =
      kQuadratic + Overrides{"algorithm.kind=gradient_tracking", "algorithm.order=awc",
                             "optimizer.rate=1.5", "run.rounds=40"};
  const Compared compared = compare(overrides);
  CHECK(*compared.prediction.rate > 1);
  CHECK_FALSE(compared.prediction.limit);
  CHECK(compared.measured_distance.back() > 1e3);
  CHECK(prediction_text(set_up(overrides), compared.prediction)
            .find("use a smaller optimizer.rate") != std::string::npos);
}

TEST_CASE("mixing alone decays as predicted, within the sampling error of 20,000 coordinates") {
  for (const char* kind : {"ring", "torus", "exponential", "one_peer_exponential", "base",
                           "random_matching", "complete"}) {
    CAPTURE(kind);
    const Overrides overrides{"algorithm.kind=consensus",
                              "algorithm.length=20000",
                              "run.peers=12",
                              "run.rounds=24",
                              "log.every=2",
                              std::string("topology.kind=") + kind};
    if (!make_setup(configured(overrides)).ok()) continue;
    const Compared compared = compare(overrides);
    // The square of a mode is a sum of d squares: with a single mode the standard deviation is
    // sqrt(1/(2 d)) = 0.5 %.
    check_close(compared.measured_consensus, compared.prediction.consensus_distance, 0.025, 1e-4);
    if (const auto& exact = compared.prediction.convergence->rounds_to_exact; exact && *exact <= 22)
      CHECK(compared.prediction.consensus_distance.back() == 0);
  }
}

TEST_CASE("gradient noise: a run fluctuates around the predicted distance") {
  for (const Overrides& algorithm :
       {Overrides{"algorithm.kind=dpsgd"}, Overrides{"algorithm.kind=gradient_tracking"},
        Overrides{"algorithm.kind=allreduce"}}) {
    CAPTURE(algorithm.front());
    const Compared compared =
        compare(kQuadratic + algorithm +
                Overrides{"data.gradient_noise=0.3", "topology.kind=torus", "topology.lazy=true",
                          "optimizer.rate=0.4", "run.rounds=8000", "log.every=10"});
    REQUIRE(compared.prediction.limit);
    CHECK(compared.prediction.limit->optimum > compared.prediction.bias->optimum);
    double square = 0, consensus = 0;
    const std::size_t from = 40, count = compared.measured_distance.size() - from;
    for (std::size_t i = from; i < compared.measured_distance.size(); ++i) {
      square += std::pow(compared.measured_distance[i], 2) / static_cast<double>(count);
      consensus += std::pow(compared.measured_consensus[i], 2) / static_cast<double>(count);
    }
    CHECK(std::sqrt(square) == doctest::Approx(compared.prediction.limit->optimum).epsilon(0.03));
    if (compared.prediction.limit->consensus > 0)
      CHECK(std::sqrt(consensus) ==
            doctest::Approx(compared.prediction.limit->consensus).epsilon(0.03));
  }
}

TEST_CASE("bytes are predicted exactly, with headers") {
  const Folder folder;
  int made = 0;
  for (const Overrides& algorithm :
       {Overrides{"algorithm.kind=consensus", "algorithm.length=2500"},
        Overrides{"algorithm.kind=dpsgd"}, Overrides{"algorithm.kind=gradient_tracking"},
        Overrides{"algorithm.kind=extra"}, Overrides{"algorithm.kind=qg_momentum"},
        Overrides{"algorithm.kind=dmsgd"}, Overrides{"algorithm.kind=decentlam"},
        Overrides{"algorithm.kind=push_sum"}, Overrides{"algorithm.kind=push_pull"},
        Overrides{"algorithm.kind=diloco"}})
    for (const char* kind : {"ring", "one_peer_exponential", "star", "base", "complete"}) {
      const Overrides overrides =
          algorithm + Overrides{std::string("topology.kind=") + kind, "run.peers=8", "run.rounds=7",
                                "net.chunk_kib=4", "data.batch=4"};
      CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
      if (!make_setup(configured(overrides)).ok()) continue;
      const Prediction prediction = predicted(overrides);
      REQUIRE(prediction.bytes_sent);
      CHECK(run_in(folder.path / std::to_string(made++), overrides).summary["bytes_sent"] ==
            *prediction.bytes_sent);
    }
}

TEST_CASE("the rate and the limit are those of the step size after the last milestone") {
  const Prediction small = predicted(kQuadratic + Overrides{"optimizer.rate=0.02"}),
                   step = predicted(kQuadratic + Overrides{"optimizer.schedule=step",
                                                           "optimizer.factor=0.1",
                                                           "optimizer.milestones=[30]",
                                                           "optimizer.warmup_steps=5"}),
                   cosine = predicted(kQuadratic + Overrides{"optimizer.schedule=cosine"});
  REQUIRE(step.limit);
  CHECK(*step.rate == doctest::Approx(*small.rate));
  CHECK(step.limit->optimum == doctest::Approx(small.limit->optimum));
  CHECK_FALSE(cosine.limit);
  CHECK(cosine.not_known.front().find("the step size does not settle") != std::string::npos);
}

TEST_CASE("without a curve, the prediction has the reason and the other values") {
  const auto reason = [](const Overrides& overrides) {
    const Prediction prediction = predicted(overrides);
    CHECK(prediction.consensus_distance.empty());
    CHECK_FALSE(prediction.limit);
    REQUIRE_FALSE(prediction.not_known.empty());
    return prediction.not_known.back();
  };
  const auto says = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  CHECK(says(reason({"run.peers=16"}), "no curve for this loss"));
  CHECK(says(reason(kQuadratic + Overrides{"data.batch=4"}), "data.batch = 0"));
  CHECK(says(reason(kQuadratic + Overrides{"algorithm.policy=async"}), "policy async"));
  CHECK(says(reason({"algorithm.kind=consensus", "algorithm.policy=async"}), "policy async"));

  const Prediction digits =
      predicted({"run.peers=16", "topology.kind=one_peer_exponential", "run.rounds=10"});
  CHECK(digits.convergence->rounds_to_exact == 4);
  CHECK(digits.spectral_gap == 1);
  const Prediction apart = predicted({"run.peers=4", "algorithm.kind=allreduce"});
  CHECK_FALSE(apart.convergence);
  CHECK_FALSE(apart.bytes_sent);
}

TEST_CASE("a long curve is thinned out, and keeps its first and last point") {
  const Prediction prediction =
      predicted(kQuadratic + Overrides{"run.rounds=25001", "log.every=1"});
  CHECK(prediction.rounds.size() <= kMaxPoints + 1);
  CHECK(prediction.rounds.front() == 0);
  CHECK(prediction.rounds.back() == 25001);
  CHECK(prediction.distance_to_optimum.size() == prediction.rounds.size());
}

TEST_CASE("the largest stable step: below it errors shrink, above it they grow") {
  for (const char* kind : {"ring", "torus", "complete"})
    for (const char* lazy : {"false", "true"})
      for (const Overrides& algorithm :
           {Overrides{"algorithm.kind=dpsgd"},
            {"algorithm.kind=dpsgd", "algorithm.order=awc"},
            {"algorithm.kind=gradient_tracking"},
            {"algorithm.kind=gradient_tracking", "algorithm.order=awc"},
            {"algorithm.kind=dmsgd", "algorithm.momentum=0.4"},
            {"algorithm.kind=decentlam", "algorithm.momentum=0.4"}}) {
        const Overrides overrides =
            kQuadratic +
            Overrides{std::string("topology.kind=") + kind, std::string("topology.lazy=") + lazy} +
            algorithm;
        CAPTURE(fmt::format("{}", fmt::join(overrides, " ")));
        const auto step = stable_step(set_up(overrides));
        REQUIRE(step.has_value());
        const auto rate_at = [&](double rate) {
          const auto prediction =
              predicted(overrides + Overrides{fmt::format("optimizer.rate={}", rate)});
          REQUIRE(prediction.rate.has_value());
          return *prediction.rate;
        };
        CHECK(rate_at(0.99 * step->largest) < 1);
        CHECK(rate_at(1.01 * step->largest) > 1);
        if (lazy == std::string("false")) {
          const auto tame = stable_step(set_up(overrides + Overrides{"topology.lazy=true"}));
          CHECK(tame->largest == doctest::Approx(step->largest_if_lazy));
        }
      }
}

TEST_CASE("a step that a lazy W would make much larger is warned of") {
  const Overrides tracking = kQuadratic + Overrides{"algorithm.kind=gradient_tracking"};
  const Overrides torus = tracking + Overrides{"topology.kind=torus"};
  CHECK(stable_step_warning(set_up(torus + Overrides{"algorithm.order=awc"})) ==
        "the lowest eigenvalue of W is -0.600, so 'gradient_tracking' is stable for steps up to "
        "0.08 / L only, where L is the largest curvature of the loss; topology.lazy = true allows "
        "0.72 / L");
  const std::string atc = stable_step_warning(set_up(torus));
  CHECK(atc.find("steps up to 1.07 / L only") != std::string::npos);
  CHECK(atc.ends_with("topology.lazy = true allows 2 / L"));
  const Overrides grid = tracking + Overrides{"topology.kind=grid"};
  CHECK(stable_step_warning(set_up(grid)).empty());  // 1.89 / L, and 2 / L if lazy
  CHECK(stable_step(set_up(torus))->largest == doctest::Approx(0.64 / 0.6));
  CHECK(stable_step_warning(set_up(tracking + Overrides{"topology.kind=ring"})).empty());
  CHECK(stable_step_warning(set_up(torus + Overrides{"topology.lazy=true"})).empty());
  CHECK(stable_step_warning(set_up(kQuadratic + Overrides{"topology.kind=torus"})).empty());
  for (const char* other : {"topology.kind=one_peer_exponential", "optimizer.momentum=0.9",
                            "optimizer.kind=adam", "run.peers=1"})
    CHECK_FALSE(stable_step(set_up(tracking + Overrides{other})).has_value());
}

TEST_CASE("bytes that are not predicted have a reason") {
  for (const Overrides& overrides :
       {Overrides{"algorithm.kind=allreduce"}, Overrides{"topology.kind=random_matching"},
        Overrides{"algorithm.policy=async"}, Overrides{"algorithm.kind=power_gossip"}}) {
    const Prediction prediction = predicted(kQuadratic + overrides);
    CHECK_FALSE(prediction.bytes_sent.has_value());
    CHECK(prediction.not_known.front().starts_with("bytes of the whole run: "));
  }
}
