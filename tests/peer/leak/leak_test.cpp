// gossamer leak: runs whose samples are known to be readable, protection, and what is refused.
#include "peer/leak/leak.hpp"

#include <cmath>

#include "peer/leak/sample_recovery.hpp"
#include "peer/leak/sent_rows.hpp"
#include "peer/leak/updates.hpp"
#include "peer/runtime/run.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const Overrides kRing{"run.peers=6",    "run.rounds=20",      "topology.kind=ring",
                      "model.kind=mlp", "model.hidden=24",    "data.kind=digits",
                      "data.batch=1",   "optimizer.rate=0.1", "local.threads=1"};

LeakRequest each_alone(int peers, gossip::Round rounds) {
  LeakRequest request;
  for (int peer = 0; peer < peers; ++peer) request.observers.push_back({peer});
  request.rounds = rounds;
  return request;
}

Leak leaked(const Overrides& overrides, int peers = 6, gossip::Round rounds = 6) {
  auto result = leak(configured(overrides), each_alone(peers, rounds));
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  return std::move(*result);
}

std::vector<LeakedPeer> at_distance(const Leak& leak, int distance) {
  std::vector<LeakedPeer> found;
  for (const ObserverLeak& group : leak.groups)
    for (const LeakedPeer& peer : group.peers)
      if (peer.distance == distance) found.push_back(peer);
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

TEST_CASE("peers one and two hops away read the one sample of a batch") {
  const Leak leak = leaked(kRing);
  const auto neighbours = at_distance(leak, 1), further = at_distance(leak, 2);
  REQUIRE(neighbours.size() == 12);
  for (const LeakedPeer& peer : neighbours) {
    CHECK(peer.share > 0.999);
    CHECK(peer.explained.value() > 0.999);
    CHECK(peer.samples.value().psnr > 60);
    CHECK(peer.samples.value().recognised == 1);
    CHECK(peer.samples.value().label.value());
    CHECK(peer.control.value().psnr < 20);
    CHECK(peer.control.value().recognised == 0);
    CHECK(peer.membership.has_value());
  }
  double recognised = 0;
  REQUIRE(further.size() == 12);
  for (const LeakedPeer& peer : further) {
    CHECK(peer.share < 0.5);
    CHECK(peer.explained.value() < 0.9);
    CHECK(peer.samples.value().rounds <= 6);
    CHECK_FALSE(peer.membership.has_value());
    recognised += peer.samples.value().recognised / 12;
  }
  CHECK(recognised > 0.8);
  REQUIRE(leak.shown.size() == 30);
  CHECK(leak.reads_samples);
  CHECK(leak.sample_shape == std::vector<std::int64_t>{1, 8, 8});
}

TEST_CASE("fewer rounds never show more than more rounds") {
  const Leak few = leaked(kRing, 6, 2), many = leaked(kRing, 6, 8);
  for (std::size_t g = 0; g < 6; ++g)
    for (std::size_t k = 0; k < 5; ++k) {
      const SampleOutcome &before = few.groups[g].peers[k].samples.value(),
                          &after = many.groups[g].peers[k].samples.value();
      CHECK_FALSE(before.is_better_than(after));
    }
}

TEST_CASE("no sample is read off private gradients, nor off a model without a dense first layer") {
  const Overrides noisy = kRing + Overrides{"privacy.clip=1", "privacy.noise_multiplier=1",
                                            "privacy.noise=reproducible"};
  for (const LeakedPeer& peer : at_distance(leaked(noisy), 1)) {
    CHECK(peer.share > 0.999);  // of the update, with its noise
    CHECK(peer.samples.value().psnr < peer.control.value().psnr);
    CHECK(peer.samples.value().recognised == 0);
  }
  Overrides cnn = kRing;
  cnn[3] = "model.kind=cnn";
  cnn[4] = "model.channels=4";
  const Leak leak = leaked(cnn);
  CHECK_FALSE(leak.reads_samples);
  CHECK(leak.shown.empty());
  CHECK_FALSE(at_distance(leak, 1)[0].samples.has_value());
  CHECK(at_distance(leak, 1)[0].explained.value() > 0.999);
  CHECK(has(leak_text(each_alone(6, 6), leak), "no samples were read off"));
}

TEST_CASE("an attack on a codec's messages changes no bit of a run, and knows what peers mix") {
  constexpr gossip::Round kRounds = 4;
  for (const auto& [algorithm, codec] :
       std::vector<std::pair<std::string, std::string>>{{"dpsgd", "none"},
                                                        {"dpsgd", "int8"},
                                                        {"choco", "none"},
                                                        {"choco", "int8"},
                                                        {"choco", "topk"},
                                                        {"choco", "randk"},
                                                        {"choco", "sign"}}) {
    CAPTURE(algorithm);
    CAPTURE(codec);
    Overrides overrides = kRing + Overrides{"algorithm.kind=" + algorithm, "codec.kind=" + codec,
                                            "run.rounds=4", "run.init=different"};
    if (algorithm == "choco") overrides.push_back("algorithm.consensus_rate=0.3");
    const auto hash_of = [](const Setup& setup) {
      const Folder folder;
      RunRequest request;
      request.folder = folder.path / "run";
      const auto outcome = run(setup, std::move(request));
      REQUIRE_MESSAGE(outcome.ok(), outcome.error().message);
      return std::string(outcome->summary.at("final_hash"));
    };
    const auto setup_of = [](const Overrides& settings) {
      auto setup = make_setup(configured(settings));
      REQUIRE_MESSAGE(setup.ok(), setup.error().message);
      return std::move(*setup);
    };
    Setup tapped = setup_of(overrides);
    SentRows sent(6, kRounds);
    sent.listen(tapped);
    CHECK(hash_of(tapped) == hash_of(setup_of(overrides)));
    // Without training, rows change by mixing alone: nothing is left that would be an update.
    Setup still = setup_of(overrides + Overrides{"optimizer.rate=1e-9"});
    SentRows rows(6, kRounds);
    rows.listen(still);
    hash_of(still);
    REQUIRE(rows.complete());
    const Updates updates(still, rows, kRounds, algorithm == "choco" ? 0.3 : 1);
    for (int peer = 0; peer < 6; ++peer)
      for (gossip::Round t = 0; t < kRounds; ++t) {
        double change = 0, square = 0, error = 0;
        for (std::size_t k = 0; k < still.parameters; ++k) {
          const auto exact = static_cast<double>(rows.exact(peer, t)[k]);
          square += exact * exact;
          change += updates.of(peer, t)[k] * updates.of(peer, t)[k];
          error += std::pow(static_cast<double>(rows.decoded(peer, t)[k]) - exact, 2);
        }
        CHECK(change < 1e-11 * square);
        CHECK((error < 1e-12 * square) == (codec == "none"));
      }
  }
}

TEST_CASE("CHOCO-SGD tells as much as D-PSGD where its codec omits nothing") {
  Overrides choco = kRing + Overrides{"algorithm.kind=choco", "algorithm.consensus_rate=1"};
  const Leak expected = leaked(kRing), found = leaked(choco);
  for (std::size_t g = 0; g < 6; ++g)
    for (std::size_t k = 0; k < 5; ++k) {
      const LeakedPeer &one = expected.groups[g].peers[k], &other = found.groups[g].peers[k];
      CHECK(one.share == doctest::Approx(other.share).epsilon(1e-4));
      CHECK(one.explained.value() == doctest::Approx(other.explained.value()).epsilon(0.01));
      CHECK(one.samples.value().recognised == other.samples.value().recognised);
    }
  // Smaller steps towards neighbours: what a row says of the peers behind its sender changes.
  choco.back() = "algorithm.consensus_rate=0.3";
  for (const LeakedPeer& peer : at_distance(leaked(choco), 1)) {
    CHECK(peer.explained.value() > 0.999);
    CHECK(peer.samples.value().recognised == 1);
  }
}

TEST_CASE(
    "messages that are rounded, or of a fifth of all values, show the one sample of a batch") {
  const auto recognised = [](const Overrides& more) {
    double sum = 0;
    const auto peers = at_distance(leaked(kRing + more), 1);
    for (const LeakedPeer& peer : peers) {
      CHECK(peer.membership.has_value());
      sum += peer.samples.value().recognised;
    }
    return sum / static_cast<double>(peers.size());
  };
  CHECK(recognised({"codec.kind=bf16"}) > 0.9);
  CHECK(recognised({"codec.kind=int8"}) > 0.9);
  CHECK(recognised({"algorithm.kind=choco", "codec.kind=int8"}) > 0.9);
  const double sparse = recognised(
      {"model.hidden=64", "algorithm.kind=choco", "codec.kind=topk", "codec.fraction=0.2"});
  CHECK(sparse > 0.9);
}

TEST_CASE("without training, the shares are those of the graph") {
  LeakRequest request = each_alone(6, 6);
  request.trains = false;
  const auto predicted = leak(configured(kRing), request);
  REQUIRE(predicted.ok());
  const Leak measured = leaked(kRing);
  for (std::size_t g = 0; g < 6; ++g)
    for (std::size_t k = 0; k < 5; ++k) {
      const LeakedPeer &before = predicted->groups[g].peers[k],
                       &after = measured.groups[g].peers[k];
      CHECK(before.share == after.share);
      CHECK(before.round == after.round);
      CHECK_FALSE(before.explained.has_value());
    }
}

TEST_CASE("a run or a request that cannot be attacked is refused, with what to change") {
  const LeakRequest request = each_alone(6, 6);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"algorithm.kind", "extra"},
                                                        {"algorithm.order", "awc"},
                                                        {"algorithm.policy", "async"},
                                                        {"mixing.rule", "median"},
                                                        {"optimizer.kind", "adam"},
                                                        {"optimizer.weight_decay", "0.1"}}) {
    CAPTURE(key);
    const std::string message = refusal(kRing + Overrides{key + "=" + value}, request);
    CHECK(message.starts_with(key + " = '" + value + "'"));
    CHECK(has(message, "set it to"));
  }
  CHECK(has(refusal(kRing + Overrides{"data.crop=1"}, request), "set data.crop = 0"));
  CHECK(has(refusal(kRing + Overrides{"data.flip=true"}, request), "data.flip = false"));
  // One of five peers has no partner, and with a codec makes no message.
  const Overrides idle{"run.peers=5", "topology.kind=random_matching"};
  CHECK(has(refusal(kRing + idle + Overrides{"codec.kind=bf16"}, each_alone(5, 6)),
            "choose a topology without idle peers"));
  CHECK(refusal(kRing + idle, each_alone(5, 6)).empty());
  LeakRequest wrong = request;
  wrong.rounds = 21;
  CHECK(has(refusal(kRing, wrong), "run.rounds = 20"));
  wrong = request;
  wrong.observers = {{0, 6}};
  CHECK(has(refusal(kRing, wrong), "there is no peer 6; ids are 0 to 5"));
  wrong.observers = {{0, 1, 2, 3, 4, 5}};
  CHECK(has(refusal(kRing, wrong), "no peer is left to attack"));
  wrong = request;
  wrong.similarity = std::nan("");
  CHECK(has(refusal(kRing, wrong), "--similarity"));
  wrong = request;
  wrong.rounds = 1000;
  CHECK(has(refusal(kRing + Overrides{"run.rounds=1000"}, wrong), "observe 682 rounds or fewer"));
  CHECK(has(refusal(kRing + Overrides{"run.peers=1"}, {.observers = {{0}}, .rounds = 2}),
            "a peer alone receives no rows"));
}

TEST_CASE("an interrupt ends it") {
  LeakRequest request = each_alone(6, 6);
  request.interrupted = [] { return true; };
  const auto result = leak(configured(kRing), request);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::interrupted);
}

TEST_CASE("files of an earlier attack do not stay") {
  const Folder folder;
  const LeakRequest request = each_alone(6, 6);
  const Leak leak = leaked(kRing);
  REQUIRE(write_leak(folder.path, request, leak).ok());
  CHECK(fs::exists(folder.path / "samples.safetensors"));
  REQUIRE(write_leak(folder.path, request, {}).ok());
  CHECK_FALSE(fs::exists(folder.path / "samples.safetensors"));
  CHECK(fs::exists(folder.path / "leak.json"));
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
      {.name = "0.weights", .shape = {2, 4}, .offset = 0, .length = 8, .takes_samples = true},
      {.name = "0.bias", .shape = {4}, .offset = 8, .length = 4, .takes_samples = true},
      {.name = "1.bias", .shape = {2}, .offset = 12, .length = 2, .gives_outputs = true}};
  const std::vector<double> update{-2, 6, -10, 0, -4, -2, 1, 0, -2, 2, -4, 0, -0.1, 0.1};
  const SampleRecovery recovery(data, blocks);
  REQUIRE(recovery.possible());
  const auto candidates = recovery.candidates(update);
  REQUIRE(candidates.size() == 4);
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
  // Of two channels: the model takes channels last, and the data set has them first.
  data.channels = 2;
  data.width = 1;
  CHECK(SampleRecovery(data, blocks).candidates(update)[0] == std::vector<float>{1, 2});
  // No dense operation with a bias takes the samples.
  const std::vector<train::ParameterBlock> biases{blocks[1], blocks[2]};
  const SampleRecovery none(data, biases);
  CHECK_FALSE(none.possible());
  CHECK(none.candidates(update).empty());
}

TEST_CASE("a sample that all units have is found from a part of its products with them") {
  constexpr std::size_t kFeatures = 36, kUnits = 20;
  train::Dataset data;
  data.width = data.height = 6;
  data.classes = 2;
  data.count = 1;
  data.labels = {0};
  for (std::size_t f = 0; f < kFeatures; ++f)
    data.features.push_back(f % 5 == 0 ? 0.0F : static_cast<float>((f * 7) % 17) / 16);
  const std::vector<train::ParameterBlock> blocks{{.name = "0.weights",
                                                   .shape = {kFeatures, kUnits},
                                                   .offset = 0,
                                                   .length = kFeatures * kUnits,
                                                   .takes_samples = true},
                                                  {.name = "0.bias",
                                                   .shape = {kUnits},
                                                   .offset = kFeatures * kUnits,
                                                   .length = kUnits,
                                                   .takes_samples = true}};
  const SampleRecovery recovery(data, blocks);
  RandomStream random(1, kNoPeer, Purpose::data);
  std::vector<double> update(kFeatures * kUnits + kUnits);
  for (std::size_t j = 0; j < kUnits; ++j) {
    const double step = random.next_double() - 0.5;
    update[kFeatures * kUnits + j] = step;
    for (std::size_t f = 0; f < kFeatures; ++f)
      update[f * kUnits + j] =
          random.next_double() < 0.3 ? static_cast<double>(data.features[f]) * step : 0;
  }
  const std::vector<std::uint32_t> samples{0};
  const auto best = [&] { return recovery.match(samples, recovery.candidates(update))[0].psnr; };
  CHECK(best() > 60);
  // Of two units the biases are known, too, which is enough for the scale; and of none.
  for (std::size_t j = 2; j < kUnits; ++j) update[kFeatures * kUnits + j] = 0;
  CHECK(best() > 60);
  update[kFeatures * kUnits] = update[kFeatures * kUnits + 1] = 0;
  CHECK(best() > 60);  // it has the largest value
  std::ranges::fill(update, 0);
  CHECK(recovery.candidates(update).empty());
}
