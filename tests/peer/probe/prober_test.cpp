// A probe in virtual time finds the properties that the simulated network was given.
#include "peer/probe/prober.hpp"

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gossip/engine/peer_group.hpp"
#include "gossip/links/network_model.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gpu/cpu_device.hpp"
#include "peer/probe/probe_algorithm.hpp"
#include "topology/mixing_matrix.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::peer;

namespace {

std::unique_ptr<topology::MixingSchedule> all_linked(int nodes) {
  auto made = topology::make_schedule({"complete", {}, {}, {nodes, 0}});
  REQUIRE(made.ok());
  return std::move(made).value();
}

/// Processes of one node each, in one process and in virtual time.
class ProbedNetwork final : private EngineHooks {
 public:
  explicit ProbedNetwork(NetworkSpec spec, double uplink_mbit_s = 0,
                         std::unique_ptr<Algorithm> hostile = nullptr)
      : nodes_(spec.peers),
        network_(std::move(spec)),
        hostile_(std::move(hostile)),
        schedule_(all_linked(nodes_)),
        group_(request(), *this, [this](Error error) { stop(error); }) {
    for (int node = 0; node < nodes_; ++node) {
      NodeModel model;
      model.uplink_bytes_per_second = uplink_mbit_s * 1e6 / 8;
      ports_[node] = SimulatedPort(model);
      algorithm_.plan.processes.push_back(node);
    }
    algorithm_.plan.on_error = [this](const Error& error) { stop(error); };
    algorithm_.on_result = [this](std::vector<ProcessMeasurement> all) { result = std::move(all); };
    group_.connect_hosted([this](int from, int to) {
      return std::make_unique<SimulatedLink>(scheduler_, group_.exchange(), network_.link(from, to),
                                             ports_.at(from), ports_.at(to),
                                             [this](Error why) { stop(why); });
    });
    for (const auto& engine : group_.engines()) {
      engine->begin_at(0);
      engine->start();
    }
    scheduler_.run();
    seconds = gossip::seconds(scheduler_.now());
  }

  std::vector<ProcessMeasurement> result;
  std::optional<Error> error;
  double seconds = 0;

 private:
  /// Node 1 is hostile if there is another algorithm for it.
  class Dispatch final : public Algorithm {
   public:
    explicit Dispatch(const ProbedNetwork& world) : world_(world) {}
    std::vector<RowSpec> rows(const topology::MixingSchedule& schedule) const override {
      return world_.algorithm_.rows(schedule);
    }
    AlgorithmRequirements requirements() const override { return world_.algorithm_.requirements(); }
    int steps_per_round() const override { return 0; }
    task<void> round(Node& node, Round t) const override {
      return node.id() == 1 && world_.hostile_ ? world_.hostile_->round(node, t)
                                               : world_.algorithm_.round(node, t);
    }
    std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
      return world_.algorithm_.partners(i, schedule);
    }

   private:
    const ProbedNetwork& world_;
  };

  GroupRequest request() {
    GroupRequest group{scheduler_, compute_, device_, *schedule_, dispatch_};
    group.exchange.rounds = 1;
    group.exchange.chunk_values = kMostPartValues;
    group.hosted.resize(static_cast<std::size_t>(nodes_));
    std::iota(group.hosted.begin(), group.hosted.end(), 0);
    group.engine.peers = nodes_;
    group.engine.rounds = 1;
    group.layout.length = kMostPartValues;
    group.layout.gradient = false;
    return group;
  }
  void stop(const Error& why) {
    if (!error) error = why;
    scheduler_.stop();
  }

  int nodes_;
  NetworkModel network_;
  std::unique_ptr<Algorithm> hostile_;
  std::unique_ptr<topology::MixingSchedule> schedule_;
  VirtualScheduler scheduler_;
  InlineExecutor executor_;
  gpu::CpuDevice device_{1};
  Compute compute_{scheduler_, executor_, device_, nullptr, StepTimes{}};
  ProbeAlgorithm algorithm_{scheduler_};
  Dispatch dispatch_{*this};
  std::map<int, SimulatedPort> ports_;
  PeerGroup group_;
};

/// Follows the protocol up to what it sends in place of the duration of the first transfer.
class WrongDuration final : public Algorithm {
 public:
  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override { return {}; }
  AlgorithmRequirements requirements() const override { return {}; }
  int steps_per_round() const override { return 0; }
  std::vector<int> partners(int, const topology::MixingSchedule&) const override { return {}; }
  task<void> round(Node& node, Round t) const override {
    float number = 1;
    const std::span<float> value(&number, 1);
    while (number != 0) {
      co_await node.receive(0, t, kNumberRow, value, Combine::replace);
      node.send_copy(0, t, kNumberRow, value);
    }
    node.send_copy(0, t, kNumberRow, value);  // ready
    co_await node.receive(0, t, kNumberRow, value, Combine::replace);
    const TransferSize size = transfer_size(0);
    const auto part = node.row(kSourceRow).first(static_cast<std::size_t>(size.values));
    for (int k = 0; k < size.parts; ++k) node.send(0, t, kSourceRow, part);
    number = -1;
    node.send_copy(0, t, kNumberRow, value);
  }
};

NetworkSpec four_peers() {
  NetworkSpec spec;
  spec.peers = 4;
  spec.latencies = LinkTable(4, {0, 20, 70, 40, 20, 0, 30, 60, 70, 30, 0, 5, 40, 60, 5, 0});
  spec.bandwidths = LinkTable(4, {0, 80, 30, 50, 40, 0, 60, 70, 30, 20, 0, 10, 50, 70, 25, 0});
  return spec;
}

}  // namespace

TEST_CASE("a probe measures the latency and the bandwidth of every link") {
  const NetworkSpec spec = four_peers();
  const ProbedNetwork simulation(spec);
  REQUIRE_FALSE(simulation.error);
  REQUIRE(simulation.result.size() == 4);
  for (int from = 0; from < 4; ++from)
    for (int to = from + 1; to < 4; ++to) {
      CAPTURE(from);
      CAPTURE(to);
      const auto& pair =
          simulation.result[static_cast<std::size_t>(from)].links[static_cast<std::size_t>(to)];
      CHECK(pair.latency.latency_ms == doctest::Approx(spec.latencies->at(from, to)).epsilon(0.02));
      CHECK(pair.latency.jitter_ms == doctest::Approx(0));
      CHECK(pair.sent_mbit_s == doctest::Approx(spec.bandwidths->at(from, to)).epsilon(0.01));
      CHECK(pair.received_mbit_s == doctest::Approx(spec.bandwidths->at(to, from)).epsilon(0.01));
    }
  // Nothing but the links limits a node.
  CHECK(simulation.result[0].uplink_mbit_s == doctest::Approx(160).epsilon(0.02));
  CHECK(simulation.result[0].downlink_mbit_s == doctest::Approx(120).epsilon(0.02));
  CHECK(simulation.seconds < 60);
}

TEST_CASE("a probe measures what the links of a node share") {
  NetworkSpec spec;
  spec.peers = 3;
  spec.latency_ms = 10;
  const ProbedNetwork simulation(spec, 20);
  REQUIRE(simulation.result.size() == 3);
  for (const ProcessMeasurement& each : simulation.result)
    CHECK(each.uplink_mbit_s == doctest::Approx(20).epsilon(0.02));
  CHECK(simulation.result[0].links[1].sent_mbit_s == doctest::Approx(20).epsilon(0.01));
  CHECK(simulation.result[0].downlink_mbit_s == doctest::Approx(40).epsilon(0.02));
}

TEST_CASE("a probe measures jitter") {
  NetworkSpec spec;
  spec.peers = 2;
  spec.latency_ms = 2;
  spec.jitter_ms = 1;
  spec.bandwidth_mbit_s = 100;
  const ProbedNetwork simulation(spec);
  REQUIRE(simulation.result.size() == 2);
  const LatencyEstimate& latency = simulation.result[0].links[1].latency;
  CHECK(latency.latency_ms == doctest::Approx(2).epsilon(0.1));
  CHECK(latency.jitter_ms == doctest::Approx(1).epsilon(0.3));
}

TEST_CASE("a process that reports a duration that is none ends the probe, and is named") {
  NetworkSpec spec;
  spec.peers = 3;
  spec.bandwidth_mbit_s = 10;
  const ProbedNetwork simulation(spec, 0, std::make_unique<WrongDuration>());
  REQUIRE(simulation.error);
  CHECK(simulation.error->kind == ErrorKind::lost_peer);
  CHECK(simulation.error->message == "peer 1 sent a duration that is none");
  CHECK(simulation.result.empty());
}
