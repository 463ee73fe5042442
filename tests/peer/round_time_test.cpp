// The predicted duration of a round, against the virtual clock of the runs.
#include "peer/prediction/round_time.hpp"

#include <cmath>

#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// Links so slow that messages matter, and a row of several chunks.
const Overrides kSlow{
    "run.peers=8",        "run.rounds=80",          "log.every=0",         "model.kind=mlp",
    "model.hidden=[100]", "sim.latency_ms=5",       "sim.uplink_mbit_s=8", "sim.downlink_mbit_s=8",
    "sim.compute_ms=2",   "sim.bandwidth_mbit_s=6", "sim.sample_ms=0.25",  "data.batch=16"};

struct Times {
  double measured = 0;
  RoundTime predicted;
};

Times times_of(const std::filesystem::path& folder, const Overrides& overrides) {
  const auto predicted = round_time(set_up(overrides));
  REQUIRE(predicted);
  const Left left = run_in(folder, overrides);
  return {left.summary["virtual_seconds"].get<double>() / left.summary["rounds"].get<double>(),
          *predicted};
}

}  // namespace

TEST_CASE(
    "the duration of a round is as predicted: training, latencies, and bytes through the busiest "
    "link") {
  const Folder folder;
  int made = 0;
  for (const Overrides& algorithm : std::vector<Overrides>{
           {"algorithm.kind=dpsgd", "topology.kind=ring"},
           {"algorithm.kind=dpsgd", "topology.kind=complete", "algorithm.local_steps=3"},
           {"algorithm.kind=dpsgd", "topology.kind=exponential", "algorithm.order=awc"},
           {"algorithm.kind=dpsgd", "topology.kind=ring", "algorithm.order=awc",
            "sim.compute_ms=500"},
           {"algorithm.kind=dpsgd", "topology.kind=one_peer_exponential", "codec.kind=int8"},
           {"algorithm.kind=gradient_tracking", "topology.kind=hypercube"},
           {"algorithm.kind=gradient_tracking", "topology.kind=ring", "sim.uplink_mbit_s=0"},
           {"algorithm.kind=gradient_tracking", "topology.kind=ring", "sim.uplink_mbit_s=0",
            "sim.downlink_mbit_s=0"},
           {"algorithm.kind=dmsgd", "topology.kind=complete", "sim.bandwidth_mbit_s=1"},
           {"algorithm.kind=gradient_tracking", "algorithm.order=awc", "topology.kind=ring"},
           {"algorithm.kind=gradient_tracking", "algorithm.order=awc", "topology.kind=ring",
            "sim.latency_ms=90"},
           {"algorithm.kind=gradient_tracking", "algorithm.order=awc", "topology.kind=ring",
            "sim.latency_ms=90", "sim.compute_ms=70"},
           {"algorithm.kind=dpsgd", "topology.kind=complete", "sim.downlink_mbit_s=25"},
           {"algorithm.kind=dpsgd", "topology.kind=complete", "sim.uplink_mbit_s=0",
            "sim.downlink_mbit_s=5"},
           {"algorithm.kind=dpsgd", "topology.kind=exponential", "sim.downlink_mbit_s=10",
            "sim.uplink_mbit_s=0"},
           {"algorithm.kind=extra", "topology.kind=ring"},
           {"algorithm.kind=choco", "topology.kind=ring", "codec.kind=topk", "codec.fraction=0.1"},
           {"algorithm.kind=allreduce"},
           {"algorithm.kind=allreduce", "algorithm.form=root"},
           {"algorithm.kind=allreduce", "algorithm.form=all_to_all"},
           {"algorithm.kind=server"},
           {"algorithm.kind=server", "algorithm.servers=4"},
           {"algorithm.kind=centralized"},
           {"algorithm.kind=fedavg", "algorithm.local_steps=2", "algorithm.fraction=1"},
           {"algorithm.kind=fedavg", "algorithm.local_epochs=2", "data.partition=iid"}}) {
    CAPTURE(fmt::format("{}", fmt::join(algorithm, " ")));
    const Times times = times_of(folder.path / std::to_string(made++), kSlow + algorithm);
    CAPTURE(times.measured);
    CAPTURE(times.predicted.seconds());
    CHECK(std::abs(times.measured / times.predicted.seconds() - 1) < 0.05);
  }
}

TEST_CASE(
    "a round of gossip does not depend on n, a round of a server is proportional to its workers") {
  const auto seconds = [](const Overrides& overrides) {
    return round_time(set_up(kSlow + overrides))->seconds();
  };
  const Overrides ring{"topology.kind=ring"}, server{"algorithm.kind=server"};
  CHECK(std::abs(seconds(ring + Overrides{"run.peers=4"}) -
                 seconds(ring + Overrides{"run.peers=64"})) < 1e-9);
  const double latency = 2 * 0.005, training = 0.006;
  const auto sending = [&](const char* peers) {
    return seconds(server + Overrides{peers}) - latency - training;
  };
  const double row = sending("run.peers=16") - sending("run.peers=15");
  CHECK(std::abs(sending("run.peers=32") - sending("run.peers=16") - 16 * row) < 1e-9);
  CHECK(row > 0.03);  // 30 kB at 8 Mbit/s
}

TEST_CASE("slow peers: predicted where all are slow, and where a server waits for all") {
  const auto training = [](const Overrides& overrides) -> std::optional<double> {
    const auto time = round_time(set_up(kSlow + overrides));
    if (!time) return std::nullopt;
    return time->training;
  };
  const Overrides ring{"topology.kind=ring", "run.peers=4"}, server{"algorithm.kind=server"},
      one{"sim.slow_peers=1", "sim.slow_factor=10"},
      fast{"sim.slow_peers=1", "sim.slow_factor=0.5"},
      all{"sim.slow_peers=4", "sim.slow_factor=0.5"};
  CHECK_FALSE(training(ring + one));
  CHECK_FALSE(training(ring + fast));
  CHECK_FALSE(training(one + Overrides{"algorithm.kind=allreduce"}));
  CHECK(std::abs(*training(ring + all) - 0.003) < 1e-9);
  CHECK(std::abs(*training(server + one) - 0.06) < 1e-9);
  CHECK(std::abs(*training(server + fast) - 0.006) < 1e-9);
  CHECK(training(ring + one + Overrides{"sim.compute_ms=0", "sim.sample_ms=0"}) == 0);
}

TEST_CASE("without a barrier there is no prediction") {
  CHECK_FALSE(round_time(set_up(kSlow + Overrides{"algorithm.policy=async"})));
  CHECK_FALSE(round_time(set_up(kSlow + Overrides{"algorithm.kind=async_server"})));
  CHECK_FALSE(round_time(set_up(kSlow + Overrides{"algorithm.kind=ad_psgd"})));
  CHECK_FALSE(round_time(
      set_up(kSlow + Overrides{"algorithm.kind=fedavg", "data.batch=1"})));  // 179 or 180 steps
}

TEST_CASE("with different links or steps there is no prediction, unless the difference is 0") {
  for (const char* random : {"sim.latency_spread=0.5", "sim.bandwidth_spread=0.5",
                             "sim.jitter_ms=1", "sim.compute_spread=0.5"})
    CHECK_FALSE(round_time(set_up(kSlow + Overrides{random})));
  CHECK(round_time(set_up(kSlow + Overrides{"sim.latency_ms=0", "sim.latency_spread=0.5"})));
  CHECK(round_time(
      set_up(kSlow + Overrides{"sim.compute_ms=0", "sim.sample_ms=0", "sim.compute_spread=0.5"})));
}
