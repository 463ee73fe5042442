// Noise that neighbours share: what is refused, that it cancels, what it is counted for, and with
// which processes secrets are agreed on.
#include <set>

#include "peer/prediction/prediction.hpp"
#include "peer/privacy/pair_secrets.hpp"
#include "peer/privacy/privacy_plan.hpp"
#include "tests/peer/test_util.hpp"
#include "theory/pair_noise.hpp"
#include "theory/privacy_accountant.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const Overrides kPairs{"run.peers=5",    "run.rounds=6",         "data.batch=8",
                       "privacy.clip=1", "privacy.pair_noise=3", "privacy.noise_multiplier=0.5"};
const Overrides kEpsilon{"run.peers=5",    "run.rounds=6",         "data.batch=8",
                         "privacy.clip=1", "privacy.pair_noise=3", "privacy.epsilon=4"};

std::string pairs_refusal(const Overrides& overrides) {
  const auto setup = make_setup(configured(kPairs + overrides));
  return setup.ok() ? "" : setup.error().message;
}

std::vector<std::uint64_t> first_of(train::PairSecrets& secrets, int peer, int partner,
                                    std::uint64_t step) {
  std::vector<std::uint64_t> numbers(4);
  secrets.bits(peer, partner, step)->fill(numbers);
  return numbers;
}

}  // namespace

TEST_CASE("where noise would not cancel, or would be known, it is refused") {
  const std::vector<std::pair<Overrides, std::string>> cases{
      {{"privacy.clip=0", "privacy.noise_multiplier=0"},
       "privacy.pair_noise: noise hides gradients of at most privacy.clip, which is 0; set "
       "privacy.clip, for example to 1"},
      {{"privacy.noise_multiplier=0"},
       "privacy.clip: clipped gradients without noise hide nothing; set privacy.epsilon (for "
       "example 8), or privacy.noise_multiplier"},
      {{"algorithm.kind=allreduce", "topology.kind=complete"},
       "privacy.pair_noise: it cancels in the averages of neighbours, and 'allreduce' averages "
       "otherwise; set it to 0, or choose an algorithm that mixes (dpsgd, gradient_tracking)"},
      {{"mixing.rule=clipped"},
       "privacy.pair_noise: it cancels in means of the rows by W, which 'clipped' does not take; "
       "set mixing.rule = mean, or set it to 0"},
      {{"topology.kind=exponential", "topology.weights=in_degree"},
       "privacy.pair_noise: it cancels where the columns of W sum to 1, and with topology.weights "
       "= in_degree only its rows do; set topology.weights = auto, or set it to 0"},
      {{"topology.kind=random_matching"},
       "privacy.pair_noise: neighbours share it in every round, and those of 'random_matching' "
       "change; choose a graph that does not (exponential, torus), in which all peers take part"},
      {{"topology.kind=one_peer_exponential"},
       "privacy.pair_noise: neighbours share it in every round, and those of "
       "'one_peer_exponential' change; choose a graph that does not (exponential, torus), in which "
       "all peers take part"},
      {{"optimizer.kind=adamw"},
       "privacy.pair_noise: it cancels where steps are linear in the gradients, as those of SGD "
       "are; set optimizer.kind = sgd, or set it to 0"},
      {{"algorithm.policy=async"},
       "privacy.pair_noise: it cancels in the average of rows of the same step, which policy async "
       "does not wait for; set algorithm.policy = sync, or set it to 0"},
      {{"privacy.colluding=2"},
       "privacy.colluding: 2 colluding peers may be all neighbours of peer 0, and know all noise "
       "that it shares; set it to at most 1, choose a graph with more neighbours, or set "
       "privacy.pair_noise = 0"},
      {{"run.peers=64", "topology.kind=complete", "privacy.colluding=5"},
       "privacy.colluding: what noise hides from any 5 of 64 peers would take too long to compute; "
       "set it to at most 2, or set privacy.pair_noise = 0"},
  };
  for (const auto& [overrides, message] : cases) CHECK(pairs_refusal(overrides) == message);
  CHECK(pairs_refusal({}) == "");
  CHECK(pairs_refusal({"topology.kind=exponential", "privacy.colluding=2"}) == "");
}

// Every step leaves the mean of the rows where the mean of the gradients puts it. With noise of
// pairs of 1,000 times the clip a model is lost, and the mean of all is not.
TEST_CASE("the noise of pairs cancels in the mean of the peers") {
  const Folder folder;
  int run = 0;
  for (const std::string noise : {"secret", "reproducible"}) {
    const auto losses = [&](const std::string& deviation) {
      const Left left =
          run_in(folder.path / std::to_string(run++),
                 kPairs + Overrides{"topology.kind=complete", "model.kind=softmax",
                                    "optimizer.rate=0.05", "log.every=1", "privacy.noise=" + noise,
                                    "privacy.pair_noise=" + deviation});
      return std::pair(left.summary["final"]["averaged_loss"].get<double>(),
                       left.summary["final"]["consensus_distance"].get<double>());
    };
    const auto [without, near] = losses("0");
    const auto [with, same] = losses("1000");
    CHECK(without < 2.4);
    CHECK(with == doctest::Approx(without).epsilon(0.1));
    CHECK(same < 1e-3);  // the complete graph has mixed it away in the same round
  }
  // On a ring it has not: the rows are far apart, and their mean is where it would be.
  const auto far = run_in(folder.path / "ring",
                          kPairs + Overrides{"privacy.pair_noise=1000", "optimizer.rate=0.05"});
  CHECK(far.summary["final"]["consensus_distance"].get<double>() > 10);
  CHECK(far.summary["final"]["averaged_loss"].get<double>() < 3);
}

TEST_CASE("an epsilon counts what own noise and that of pairs hide together, for each peer") {
  const Folder folder;
  const Setup alone = set_up(kEpsilon + Overrides{"privacy.pair_noise=0"});
  for (const std::string graph : {"ring", "exponential", "complete", "star"}) {
    const Overrides base =
        kEpsilon + Overrides{"topology.kind=" + graph,
                             graph == "star" ? "privacy.colluding=0" : "privacy.colluding=1"};
    const Setup setup = set_up(base);
    const PrivacyPlan& plan = *setup.workload->spec().privacy;
    const double own = plan.options.noise_multiplier;
    CHECK(own < alone.workload->spec().privacy->options.noise_multiplier);
    CHECK(plan.effective_noise == theory::effective_noise(noise_partners(*setup.schedule),
                                                          {own, 3, plan.options.colluding}));
    const Left left = run_in(folder.path / graph, base);
    const double epsilon = left.summary["final"]["epsilon"]["max"];
    CHECK(epsilon <= 4);
    CHECK(epsilon > 3.98);
    const auto predicted = predict(setup, 0.9).privacy;
    CHECK(predicted->epsilon == epsilon);
    CHECK(predicted->effective_noise ==
          plan.effective_noise[static_cast<std::size_t>(predicted->peer)]);
    const Json last = *left.log.end();
    for (int peer = 0; peer < 5; ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      const double q =
          sampling_of(setup.config.shards, setup.workload->trainer()->shard_size(peer));
      CHECK(last["epsilons"][p].get<double>() ==
            theory::PrivacyAccountant(q, plan.effective_noise[p]).epsilon(6, 1e-5));
    }
    // The hub of a star is hidden by the noise of all, a leaf by its own and the hub's.
    if (graph == "star")
      CHECK(last["epsilons"][0].get<double>() < last["epsilons"][1].get<double>());
  }
}

TEST_CASE("a directed graph shares noise along its edges in both directions") {
  const Setup setup = set_up(
      kPairs + Overrides{"algorithm.kind=push_sum", "topology.kind=exponential", "run.peers=7"});
  const topology::Graph partners = noise_partners(*setup.schedule);
  CHECK(topology::is_symmetric(partners));
  CHECK(partners.out[0] == std::vector<int>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("the ends of an edge have the same bits, once they have agreed, for every step") {
  SecretPairs first("run", std::vector<int>{0, 1}), second("run", std::vector<int>{2, 3});
  CHECK(first_of(first, 0, 1, 5) == first_of(first, 1, 0, 5));
  CHECK(first_of(first, 0, 1, 5) != first_of(first, 0, 1, 6));
  // Before, or where one of the two is another process now, each end has bits of its own.
  CHECK(first_of(first, 1, 2, 5) != first_of(second, 2, 1, 5));
  CHECK(first_of(first, 1, 2, 5) != first_of(first, 1, 2, 5));
  REQUIRE(first.agree(1, 2, second.contribution()).ok());
  CHECK(first_of(first, 1, 2, 5) != first_of(second, 2, 1, 5));
  REQUIRE(second.agree(2, 1, first.contribution()).ok());
  CHECK(first_of(first, 1, 2, 5) == first_of(second, 2, 1, 5));
  REQUIRE(first.agree(0, 2, second.contribution()).ok());
  REQUIRE(second.agree(2, 0, first.contribution()).ok());
  CHECK(first_of(first, 0, 2, 5) == first_of(second, 2, 0, 5));
  CHECK(first_of(first, 0, 2, 5) != first_of(first, 1, 2, 5));
  // A process that starts again has another key, so that no step has the same noise twice.
  SecretPairs again("run", std::vector<int>{2, 3});
  REQUIRE(again.agree(2, 1, first.contribution()).ok());
  CHECK(first_of(again, 2, 1, 5) != first_of(first, 1, 2, 5));
  CHECK(first_of(again, 2, 3, 5) != first_of(second, 2, 3, 5));
}

TEST_CASE("a key that makes no sense, or gives a public secret, is refused") {
  SecretPairs pairs("run", std::vector<int>{0});
  const std::string key = SecretPairs("run", std::vector<int>{1}).contribution();
  for (const std::string& contribution : {std::string(), key.substr(1), key + "x",
                                          std::string(32, '\0'), std::string(1 << 16, 'x')}) {
    const Status status = pairs.agree(0, 1, contribution);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().kind == ErrorKind::lost_peer);
    CHECK(status.error().message == "its key for the noise of pairs makes no sense");
  }
  CHECK(pairs.agree(0, 1, key).ok());
}

TEST_CASE("reproducible bits are those of the seed, of the edge and of the step") {
  ReproduciblePairs a(7), b(7), other(8);
  CHECK(first_of(a, 2, 9, 4) == first_of(b, 9, 2, 4));
  std::set<std::vector<std::uint64_t>> all;
  for (int lower = 0; lower < 20; ++lower)
    for (int higher = lower + 1; higher < 20; ++higher)
      for (const std::uint64_t step : {0, 1}) all.insert(first_of(a, lower, higher, step));
  all.insert(first_of(other, 2, 9, 4));
  CHECK(all.size() == 19 * 20 + 1);
}
