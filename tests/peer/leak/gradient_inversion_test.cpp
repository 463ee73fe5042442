// Samples that are found from their gradient alone.
#include "peer/leak/gradient_inversion.hpp"

#include <algorithm>
#include <cmath>

#include "peer/leak/leak.hpp"
#include "peer/leak/sample_recovery.hpp"
#include "tests/peer/test_util.hpp"
#include "tests/text_test_util.hpp"
#include "train/model.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

Overrides cnn_ring() {
  return {"run.peers=4",    "run.rounds=3",       "topology.kind=ring",
          "model.kind=cnn", "model.channels=[4]", "data.kind=digits",
          "data.batch=1",   "optimizer.rate=0.1", "local.threads=1"};
}

LeakRequest inverting(int iterations) {
  LeakRequest request;
  request.observers = {{0}};
  request.rounds = 2;
  request.inversion = iterations;
  return request;
}

std::string refusal_of(const Overrides& overrides, const LeakRequest& request) {
  const auto result = leak(configured(overrides), request);
  return result.ok() ? "" : result.error().message;
}

}  // namespace

TEST_CASE("the image behind a gradient of convolutions is found, and not behind another gradient") {
  const auto setup = make_setup(configured(cnn_ring()));
  REQUIRE_MESSAGE(setup.ok(), setup.error().message);
  const train::Dataset& data = *setup->workload->spec().data;
  const train::ModelContext context{.channels = data.channels,
                                    .height = data.height,
                                    .width = data.width,
                                    .classes = data.classes};
  const auto model = train::make_model("cnn", context, setup->config.model.values);
  REQUIRE(model.ok());
  std::vector<float> start(setup->parameters);
  setup->workload->initialise(0, start);
  auto made = train::SampleGradients::make(*model, context, 1);
  REQUIRE(made.ok());
  constexpr std::uint32_t kSample = 5;
  const std::vector<std::int32_t> label{data.labels[kSample]};
  made->compute(std::vector<double>(start.begin(), start.end()), data.features_of(kSample), label);
  std::vector<double> gradient(made->in_parameters().begin(), made->in_parameters().end());

  auto inversion = GradientInversion::make(setup->config, data, 400);
  REQUIRE(inversion.ok());
  const SampleRecovery recovery(data, setup->workload->spec().blocks);
  const std::uint32_t samples[]{kSample};
  const auto psnr = [&](std::uint64_t seed) {
    return recovery.match(samples, inversion->invert(start, gradient, label, seed))[0].psnr;
  };
  CHECK(psnr(1) > 20);
  CHECK(psnr(1) == psnr(1));
  for (std::size_t k = 0; k < gradient.size(); ++k)
    gradient[k] = std::sin(static_cast<double>(k * k));
  CHECK(psnr(1) < 15);
}

TEST_CASE("gossamer leak inverts the first update of each peer") {
  const auto found = leak(configured(cnn_ring()), inverting(300));
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  CHECK_FALSE(found->reads_samples);
  double best = 0;
  for (const LeakedPeer& peer : found->groups[0].peers) {
    REQUIRE(peer.inverted.has_value());
    if (peer.distance == 1) best = std::max(best, peer.inverted->psnr);
    CHECK(peer.inverted->label.has_value());
    CHECK_FALSE(peer.samples.has_value());
  }
  CHECK(best > 20);
  CHECK(found->shown.size() == 3);
  CHECK(contains(leak_text(inverting(300), *found), "by inverting"));
}

TEST_CASE("what cannot be inverted is refused") {
  CHECK(contains(refusal_of(cnn_ring() + Overrides{"algorithm.local_steps=2"}, inverting(10)),
                 "algorithm.local_steps = 2: --invert looks for the samples of one gradient"));
  Overrides whole = cnn_ring();
  whole[6] = "data.batch=0";
  CHECK(contains(refusal_of(whole, inverting(10)), "data.batch = 0: --invert looks"));
  CHECK(contains(refusal_of(cnn_ring(), inverting(-1)), "--invert -1: give a number"));
  LeakRequest predicted = inverting(10);
  predicted.trains = false;
  CHECK(contains(refusal_of(cnn_ring(), predicted), "with --predict nothing is run"));
}
