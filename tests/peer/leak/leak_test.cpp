// gossamer leak: runs whose samples are known to be readable, protection, and what is refused.
#include "peer/leak/leak.hpp"

#include <cmath>

#include "peer/leak/sample_recovery.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const Overrides kRing{"run.peers=6",    "run.rounds=20",      "topology.kind=ring",
                      "model.kind=mlp", "model.hidden=24",    "data.kind=digits",
                      "data.batch=1",   "optimizer.rate=0.1", "local.threads=1"};

LeakRequest each_alone(const Folder& folder, int peers, gossip::Round rounds) {
  LeakRequest request;
  for (int peer = 0; peer < peers; ++peer) request.observers.push_back({peer});
  request.rounds = rounds;
  request.folder = folder.path / "run";
  return request;
}

Leak leaked(const Overrides& overrides, int peers = 6, gossip::Round rounds = 6) {
  const Folder folder;
  auto result = leak(configured(overrides), each_alone(folder, peers, rounds));
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  CHECK_FALSE(fs::exists(folder.path / "run"));
  return std::move(*result);
}

std::vector<LeakedUpdate> at_distance(const Leak& leak, int distance) {
  std::vector<LeakedUpdate> found;
  for (const ObserverLeak& observer : leak.observers)
    for (const LeakedUpdate& update : observer.updates)
      if (update.distance == distance) found.push_back(update);
  return found;
}

std::string refusal(const Overrides& overrides, const LeakRequest& request) {
  const auto result = leak(configured(overrides), request);
  return result.ok() ? "" : result.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a neighbour reads the one sample of a batch, with its label") {
  const Leak leak = leaked(kRing);
  const auto neighbours = at_distance(leak, 1);
  REQUIRE(neighbours.size() == 12);
  for (const LeakedUpdate& update : neighbours) {
    CHECK(update.share > 0.999);
    CHECK(update.cosine.value() > 0.999);
    CHECK(update.psnr.value() > 60);
    CHECK(update.control.value() < 25);
    CHECK(update.label.value());
    CHECK(update.membership.has_value());
  }
  for (const LeakedUpdate& update : at_distance(leak, 3)) {
    CHECK(update.share < 0.5);
    CHECK_FALSE(update.membership.has_value());
  }
  REQUIRE(leak.shown.size() == 30);
  CHECK(leak.sample_shape == std::vector<std::int64_t>{1, 8, 8});
}

TEST_CASE("noise of private gradients hides the sample") {
  const Overrides noisy = kRing + Overrides{"privacy.clip=1", "privacy.noise_multiplier=1",
                                            "privacy.noise=reproducible"};
  for (const LeakedUpdate& update : at_distance(leaked(noisy), 1)) {
    CHECK(update.share > 0.999);  // of the update, with its noise
    CHECK(update.psnr.value_or(0) < update.control.value_or(100));
  }
}

TEST_CASE("without training, the shares are those of the graph, and no file is written") {
  const Folder folder;
  LeakRequest request = each_alone(folder, 6, 6);
  request.trains = false;
  const auto predicted = leak(configured(kRing), request);
  REQUIRE(predicted.ok());
  CHECK_FALSE(fs::exists(request.folder));
  request.trains = true;
  request.similarity = 0;
  const auto measured = leak(configured(kRing), request);
  REQUIRE(measured.ok());
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t k = 0; k < 5; ++k) {
      const LeakedUpdate &before = predicted->observers[i].updates[k],
                         &after = measured->observers[i].updates[k];
      CHECK(before.share == after.share);
      CHECK(before.round == after.round);
      CHECK_FALSE(before.cosine.has_value());
    }
}

TEST_CASE("a run that is not plain D-PSGD is refused, with what to change") {
  const Folder folder;
  const LeakRequest request = each_alone(folder, 6, 6);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"algorithm.kind", "extra"},
                                                        {"algorithm.order", "awc"},
                                                        {"algorithm.policy", "async"},
                                                        {"mixing.rule", "median"},
                                                        {"codec.kind", "bf16"}}) {
    CAPTURE(key);
    const std::string message = refusal(kRing + Overrides{key + "=" + value}, request);
    CHECK(message.starts_with(key + " = '" + value + "'"));
    CHECK(has(message, "set it to"));
  }
  LeakRequest wrong = request;
  wrong.rounds = 21;
  CHECK(has(refusal(kRing, wrong), "run.rounds = 20"));
  wrong = request;
  wrong.observers = {{0, 6}};
  CHECK(has(refusal(kRing, wrong), "there is no peer 6; ids are 0 to 5"));
  wrong = request;
  wrong.rounds = 1000;
  CHECK(has(refusal(kRing + Overrides{"run.rounds=1000"}, wrong), "observe 682 rounds or fewer"));
}

TEST_CASE("the samples of units that one sample alone reaches are read off, and others are mixed") {
  train::Dataset data;
  data.width = 2;
  data.classes = 2;
  data.count = 3;
  data.train_count = 2;
  data.features = {1, 2, 3, -1, 0, 0};
  data.labels = {0, 1, 0};
  // Three units: sample 0 alone, sample 1 alone, both with parts 1 and 3; a fourth with none.
  const std::vector<train::ParameterBlock> blocks{
      {.name = "0.weights", .shape = {2, 4}, .offset = 0, .length = 8},
      {.name = "0.bias", .shape = {4}, .offset = 8, .length = 4},
      {.name = "1.bias", .shape = {2}, .offset = 12, .length = 2}};
  const std::vector<double> update{-2, 6, -10, 0, -4, -2, 1, 0, -2, 2, -4, 0, -0.1, 0.1};
  const SampleRecovery recovery(data, blocks);
  REQUIRE(recovery.possible());
  const auto candidates = recovery.candidates(update);
  REQUIRE(candidates.size() == 3);
  CHECK(candidates[0] == std::vector<float>{1, 2});
  CHECK(candidates[1] == std::vector<float>{3, -1});
  CHECK(candidates[2] == std::vector<float>{2.5F, -0.25F});
  const std::vector<std::uint32_t> batch{0, 1};
  for (const RecoveredSample& match : recovery.match(batch, candidates))
    CHECK(match.psnr == kMostPsnr);
  const auto others = recovery.match(batch, recovery.other_samples(5));
  REQUIRE(others.size() == 2);
  // The range is 4: 10 log10(16 · 2 / 5) and 10 log10(16 · 2 / 10).
  CHECK(others[0].sample == 0);
  CHECK(others[0].psnr == doctest::Approx(10 * std::log10(32.0 / 5)));
  CHECK(others[1].psnr == doctest::Approx(10 * std::log10(32.0 / 10)));
  CHECK(recovery.label(update) == 1);
  // A first layer that is no dense one with a bias.
  const std::vector<train::ParameterBlock> biases{blocks[1], blocks[2]};
  const SampleRecovery none(data, biases);
  CHECK_FALSE(none.possible());
  CHECK(none.candidates(update).empty());
}
