// data.weights: the objective that runs minimise, and the settings that it refuses.
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

std::string weights_refusal(const Overrides& overrides) {
  const auto setup = make_setup(configured(Overrides{"data.weights=samples"} + overrides));
  return setup.ok() ? "" : setup.error().message;
}

/// Points on no line through the origin, so that the two objectives have minimisers of their own.
const std::vector<std::string> kOwnFiles{"x,y\n1,1\n", "x,y\n1,2\n2,5\n1,4\n", "x,y\n2,1\n1,3\n"};

/// The minimiser of Σ_i w_i f_i, f_i the mean of ½ (a x − y)² over the samples of peer i, with w_i
/// = 1 or the number of its samples.
double minimiser(bool by_samples) {
  const double products[] = {1, 2 + 10 + 4, 2 + 3}, squares[] = {1, 1 + 4 + 1, 4 + 1},
               samples[] = {1, 3, 2};
  double product = 0, square = 0;
  for (int i = 0; i < 3; ++i) {
    product += products[i] / (by_samples ? 1 : samples[i]);
    square += squares[i] / (by_samples ? 1 : samples[i]);
  }
  return product / square;
}

}  // namespace

TEST_CASE("every exact algorithm goes to the minimiser of the objective that data.weights names") {
  const Folder folder;
  for (std::size_t i = 0; i < kOwnFiles.size(); ++i)
    written(folder.path / fmt::format("{}.csv", i), kOwnFiles[i]);
  const Overrides base{"run.peers=3",
                       "run.rounds=300",
                       "log.every=0",
                       "topology.kind=complete",
                       "model.kind=linear",
                       "data.kind=csv",
                       "data.partition=own",
                       fmt::format("data.path={}/{{peer}}.csv", folder.path.string()),
                       "data.header=yes",
                       "data.task=regression",
                       "data.standardise=false",
                       "data.test_fraction=0",
                       "model.bias=false",
                       "data.batch=0",
                       "optimizer.rate=0.1"};
  int run = 0;
  for (const char* algorithm : {"allreduce", "centralized", "d2", "extra", "fedavg",
                                "gradient_tracking", "push_pull", "server"})
    for (const bool by_samples : {false, true}) {
      CAPTURE(algorithm);
      CAPTURE(by_samples);
      Overrides overrides = base;
      overrides.push_back(fmt::format("algorithm.kind={}", algorithm));
      overrides.push_back(by_samples ? "data.weights=samples" : "data.weights=peers");
      if (std::string(algorithm) == "fedavg") overrides.push_back("algorithm.local_steps=1");
      const Left left = run_in(folder.path / std::to_string(run++), overrides);
      for (int i = 0; i < (std::string(algorithm) == "centralized" ? 1 : 3); ++i)
        CHECK(left.row(i).front() == doctest::Approx(minimiser(by_samples)).epsilon(1e-5));
    }
}

TEST_CASE("weights by samples are refused where the steps or the rule would not keep them") {
  CHECK(weights_refusal({}) == "");
  CHECK(weights_refusal({"algorithm.kind=consensus"}) == "");
  CHECK(weights_refusal({"mixing.rule=median", "run.peers=9"}) == "");
  const std::string adam =
      "data.weights: with samples, the gradients of a peer are multiplied by its weight, which the "
      "steps of 'adam' do not depend on; set optimizer.kind = sgd, data.weights = peers, or choose "
      "an algorithm whose steps are with means of the peers' gradients (gradient_tracking, "
      "allreduce)";
  CHECK(weights_refusal({"optimizer.kind=adam"}) == adam);
  CHECK(weights_refusal(
            {"optimizer.kind=adam", "algorithm.kind=diloco", "topology.kind=complete"}) == adam);
  for (const char* algorithm :
       {"allreduce", "centralized", "gradient_tracking", "push_pull", "server"})
    CHECK(weights_refusal({"optimizer.kind=adam", fmt::format("algorithm.kind={}", algorithm)}) ==
          "");
  const Folder folder;
  for (int i = 0; i < 9; ++i)
    written(folder.path / fmt::format("{}.csv", i), "x,y\n1,a\n2,b\n3,a\n");
  const Overrides own{"run.peers=9",
                      "data.kind=csv",
                      "data.partition=own",
                      "data.batch=0",
                      "data.test_fraction=0",
                      "data.header=yes",
                      "data.class_names=[\"a\", \"b\"]",
                      fmt::format("data.path={}/{{peer}}.csv", folder.path.string()),
                      "topology.kind=complete"};
  CHECK(weights_refusal(own) == "");
  CHECK(weights_refusal(own + Overrides{"mixing.rule=median"}) ==
        "data.weights: with own data each peer states the size of its shard, and one that states a "
        "huge size takes the weight of all others, which mixing.rule = median does not prevent; "
        "set data.weights = peers");
}
