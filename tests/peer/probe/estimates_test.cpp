// The tournament of a probe, and what it estimates from times of arrival.
#include "peer/probe/estimates.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/philox.hpp"
#include "gossip/spread.hpp"
#include "peer/probe/measurement.hpp"
#include "peer/probe/process_list.hpp"
#include "peer/probe/tournament.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace std::chrono_literals;

TEST_CASE("in a tournament each pair meets once, and nobody meets two at a time") {
  for (int players = 1; players <= 33; ++players) {
    CAPTURE(players);
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < tournament_rounds(players); ++round)
      for (int player = 0; player < players; ++player) {
        const auto other = opponent(players, round, player);
        if (!other) {
          CHECK(players % 2 == 1);
          continue;
        }
        CHECK(*other != player);
        CHECK(opponent(players, round, *other) == player);
        if (player < *other) CHECK(met.insert({player, *other}).second);
      }
    CHECK(met.size() == static_cast<std::size_t>(players * (players - 1) / 2));
    CHECK(tournament_rounds(players) == (players < 2 ? 0 : players - (players % 2 == 0 ? 1 : 0)));
  }
}

TEST_CASE("latency and jitter are those of the round trips' distribution, whatever a few of them") {
  RandomStream random(1, 0, Purpose::test);
  std::vector<double> round_trips;
  for (int i = 0; i < 20000; ++i)  // 20 ms and up to 5 ms, there and back
    round_trips.push_back(0.040 + 0.005 * (random.next_double() + random.next_double()));
  for (int i = 0; i < 1000; ++i) round_trips.push_back(3.0);  // the process was not running
  const LatencyEstimate estimate = estimate_latency(round_trips);
  CHECK(estimate.latency_ms == doctest::Approx(20).epsilon(0.02));
  CHECK(estimate.jitter_ms == doctest::Approx(5).epsilon(0.1));

  const LatencyEstimate constant = estimate_latency(std::vector<double>(30, 0.010));
  CHECK(constant.latency_ms == doctest::Approx(5));
  CHECK(constant.jitter_ms == 0);
  CHECK(estimate_latency({0.002}).latency_ms == doctest::Approx(1));
  // A spread beyond the median is no reason for a negative latency.
  const LatencyEstimate wide = estimate_latency({0, 0, 0.001, 1, 1});
  CHECK(wide.latency_ms >= 0);
  CHECK(wide.jitter_ms >= 0);
}

TEST_CASE("the rate of a transfer is that of its last three quarters") {
  std::vector<gossip::Time> arrivals;
  for (int k = 0; k < 4; ++k) arrivals.push_back(1s);  // a bucket of tokens was full
  for (int k = 1; k <= 12; ++k) arrivals.push_back(1s + k * 10ms);
  CHECK(transfer_seconds(arrivals) == doctest::Approx(0.16));  // 16 parts, 10 ms each
  CHECK(transfer_seconds(std::vector<gossip::Time>(16, 2s)) == 0);
}

TEST_CASE("transfers double up to their bound, in parts that fit into a chunk") {
  for (int step = 0; step < kTransferSteps; ++step) {
    const TransferSize size = transfer_size(step);
    CHECK(static_cast<std::size_t>(size.values) <= kMostPartValues);
    CHECK(size.parts >= 16);
    CHECK(4LL * size.values * size.parts == (32LL << 10) << step);
  }
  CHECK(transfer_size(0).bits() == 8.0 * 16 * (2048 + 72));
  CHECK_FALSE(is_long_enough(std::vector<double>{0.5, 0.3}));
  CHECK(is_long_enough(std::vector<double>{0.5, 0.4}));
  CHECK(is_long_enough(std::vector<double>{0, 1.7}));
}

TEST_CASE("the spread of steps is that of which sums of steps have the durations' deviation") {
  RandomStream random(2, 0, Purpose::test);
  const gossip::Spread spread{.width = 0.4};
  std::vector<double> durations;
  for (int i = 0; i < 4000; ++i) {
    double sum = 0;
    for (int k = 0; k < 25; ++k) sum += 0.001 * spread.factor(random);
    durations.push_back(sum);
  }
  for (int i = 0; i < 100; ++i) durations.push_back(1);  // the process was not running
  CHECK(estimate_step_spread(durations, 25) == doctest::Approx(0.4).epsilon(0.1));
  CHECK(estimate_step_spread({0.1}, 25) == 0);
  CHECK(estimate_step_spread({0, 0, 0, 1}, 25) == 0);
  CHECK(estimate_step_spread({1, 1, 1, 900, 1000, 1000}, 32) == 2);
}

TEST_CASE("every process learns which nodes the others host") {
  ProcessList list({1, 4}, 6);
  REQUIRE(list.merge(ProcessList({0, 2}, 6).contribution()).ok());
  CHECK(list.processes().error().message.find("peer 3") != std::string::npos);
  REQUIRE(list.merge(ProcessList({3}, 6).contribution()).ok());
  REQUIRE(list.merge("0 2").ok());  // over another link to that process
  REQUIRE(list.merge("5").ok());
  const std::vector<std::vector<int>> expected{{0, 2}, {1, 4}, {3}, {5}};
  CHECK(*list.processes() == expected);
}

TEST_CASE("a list of nodes that makes no sense is refused") {
  for (const char* text : {"", " ", "6", "-1", "2 2", "3 2", "2 x", "1", "0 4", "2 99999999999",
                           "0x2", "2;3", "nan"}) {
    CAPTURE(text);
    ProcessList list({1, 4}, 6);
    const Status merged = list.merge(text);
    REQUIRE_FALSE(merged.ok());
    CHECK(merged.error().kind == ErrorKind::lost_peer);
  }
}

TEST_CASE("a measurement travels as values, and none is taken that cannot be one") {
  ProcessMeasurement measured(2);
  measured.links[1] = {{12.5, 0.5}, 80, 40};
  measured.uplink_mbit_s = 100, measured.downlink_mbit_s = 200;
  measured.steps = {3, 0.25};
  const std::vector<float> values = measured.values();
  REQUIRE(values.size() == ProcessMeasurement::message_length(2));
  const auto back = ProcessMeasurement::of(values);
  REQUIRE(back);
  CHECK(back->values() == values);
  CHECK(back->links[1].received_mbit_s == 40);
  CHECK(back->steps.spread == 0.25);
  for (std::size_t k = 0; k < values.size(); ++k)
    for (const float wrong : {-1.0F, std::nanf(""), INFINITY, 2e9F}) {
      std::vector<float> hostile = values;
      hostile[k] = wrong;
      CHECK_FALSE(ProcessMeasurement::of(hostile));
    }
}

TEST_CASE("the peers of a process have its links, and share them") {
  std::vector<ProcessMeasurement> measured(2, ProcessMeasurement(2));
  measured[0].links[1] = {{10, 1}, 80, 40};
  measured[0].uplink_mbit_s = 100;
  measured[1].uplink_mbit_s = 50;
  measured[0].steps = measured[1].steps = {3, 0.25};
  const ProbeTables tables = tables_of(measured, {{0, 3}, {1, 2}}, 3);  // node 3 is a server
  CHECK(tables.latencies_ms.at(0, 1) == 10);
  CHECK(tables.latencies_ms.at(2, 3) == 10);
  CHECK(tables.latencies_ms.at(0, 3) == 0);
  CHECK(tables.bandwidths_mbit_s.at(3, 2) == 80);
  CHECK(tables.bandwidths_mbit_s.at(2, 3) == 40);
  CHECK(tables.bandwidths_mbit_s.at(1, 2) == 0);
  CHECK(tables.jitters_ms.at(1, 0) == 1);
  CHECK(tables.nodes[0].uplink_mbit_s == 50);
  CHECK(tables.nodes[2].uplink_mbit_s == 25);
  CHECK(tables.nodes[2].step_ms == 3);
  CHECK(tables.nodes[3].step_ms == 0);
}
