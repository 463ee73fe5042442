// The virtual network: which link has what, what chance adds to links, chunks and steps, and that
// none of it changes a bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <vector>

#include "gossip/links/link_table.hpp"
#include "gossip/links/network_model.hpp"
#include "gossip/step_times.hpp"
#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

LinkTable table(const std::string& text) {
  auto read = LinkTable::parse(text, "wan.csv");
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().message));
  return std::move(read).value();
}

std::string refused(const std::string& text) {
  const auto read = LinkTable::parse(text, "wan.csv");
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().kind == ErrorKind::data);
  return read.error().message;
}

double milliseconds(Time time) { return std::chrono::duration<double, std::milli>(time).count(); }

/// 100 peers with links of `spec`.
NetworkModel network_of(NetworkSpec spec) {
  spec.peers = 100;
  return NetworkModel(std::move(spec));
}

/// Every link of such a network, one direction of each.
std::vector<LinkModel> links_of(const NetworkModel& network) {
  std::vector<LinkModel> links;
  for (int i = 0; i < 100; ++i)
    for (int j = i + 1; j < 100; ++j) links.push_back(network.link(i, j));
  return links;
}

TrainRequest gradients(int peer, std::uint64_t step, int steps = 1) {
  TrainRequest request;
  request.peer = request.shard_of = peer;
  request.step = step;
  request.steps = steps;
  return request;
}

/// Keeps when each chunk came.
class Arrivals final : public Receiver {
 public:
  explicit Arrivals(Scheduler& scheduler) : scheduler_(scheduler) {}
  Status deliver(Chunk chunk) override {
    rounds.push_back(chunk.header.round);
    times.push_back(scheduler_.now());
    return {};
  }
  std::vector<Round> rounds;
  std::vector<Time> times;

 private:
  Scheduler& scheduler_;
};

}  // namespace

TEST_CASE("a table is read with blanks or commas, comments and Windows line ends") {
  const LinkTable read = table("# ms\n0, 40.5 ,1e2\r\n41 0\t7 # back\n\n99,8,0.25");
  CHECK(read.regions() == 3);
  CHECK(read.at(0, 1) == 40.5);
  CHECK(read.at(1, 0) == 41);
  CHECK(read.at(0, 2) == 100);
  CHECK(read.at(2, 2) == 0.25);
}

TEST_CASE("what is no table is refused, and the line is named") {
  CHECK(refused("0 1\n2 3 4\n") == "wan.csv:2: 3 numbers where the first line has 2");
  CHECK(refused("0 1\n\n2 x\n") == "wan.csv:3: 'x' is not a number from 0 to 1e+09");
  CHECK(refused("0 -1\n1 0\n").find("wan.csv:1: '-1'") == 0);
  CHECK(refused("0 nan\n1 0\n").find("wan.csv:1: 'nan'") == 0);
  CHECK(refused("0 1e10\n1 0\n").find("wan.csv:1: '1e10'") == 0);
  CHECK(refused("0 1\n1 0\n1 1\n") ==
        "wan.csv:3: a line too many: a table of 2 columns has 2 lines");
  CHECK(refused("0 1 2\n1 0 2\n") ==
        "wan.csv:2: the end after 2 lines of numbers: a table of 3 columns has 3 lines");
  CHECK(refused("# nothing\n") == "wan.csv:1: no number in the whole file");
}

TEST_CASE(
    "peers fill regions in contiguous blocks, within one; servers too; as many regions as nodes: "
    "one each") {
  NetworkSpec spec;
  spec.latencies = table("1 20 30\n21 2 31\n33 34 3");
  spec.bandwidths = table("0 8\n16 0");
  spec.peers = 10;
  spec.servers = 1;
  const NetworkModel network(spec);
  std::vector<int> sizes(3);
  int last = 0;
  for (int i = 0; i < 10; ++i) {
    const int region = network.region_of(i, 3);
    CHECK(region >= last);
    last = region;
    ++sizes[static_cast<std::size_t>(region)];
  }
  CHECK(std::ranges::max(sizes) - std::ranges::min(sizes) <= 1);
  CHECK(network.link(0, 9).latency == 30ms);
  CHECK(network.link(9, 0).latency == 33ms);
  CHECK(network.link(8, 9).latency == 3ms);
  CHECK(network.link(0, 9).bytes_per_second == 1e6);
  CHECK(network.link(9, 0).bytes_per_second == 2e6);
  CHECK(network.link(0, 1).bytes_per_second == 0);
  CHECK(network.region_of(10, 3) == 0);  // the server
  CHECK(network.region_of(10, 11) == 10);
  CHECK(network.region_of(7, 11) == 7);
  CHECK(network.longest_latency() == doctest::Approx(0.034));
  CHECK(network.least_bandwidth() == 1e6);
  CHECK_FALSE(network.is_even());
}

TEST_CASE(
    "links are drawn once for each pair: keyed, alike both ways, their mean as given, and within "
    "what is foretold") {
  for (const Spread& spread :
       {Spread{Spread::Form::log_normal, 0.5}, Spread{Spread::Form::uniform, 0.5}}) {
    NetworkSpec spec;
    spec.latency_ms = 50;
    spec.bandwidth_mbit_s = 80;
    spec.latency_spread = spec.bandwidth_spread = spread;
    const NetworkModel network = network_of(spec);
    CHECK_FALSE(network.is_even());
    CHECK(network.link(3, 7).latency == network.link(7, 3).latency);
    CHECK(network.link(3, 7).bytes_per_second == network.link(7, 3).bytes_per_second);
    CHECK(network.link(3, 7).latency == network.link(3, 7).latency);
    double sum = 0, squares = 0, bytes = 0;
    std::set<Time> different;
    for (const LinkModel& link : links_of(network)) {
      const double ms = milliseconds(link.latency);
      sum += ms, squares += ms * ms, bytes += link.bytes_per_second;
      different.insert(link.latency);
      CHECK(ms / 1e3 <= network.longest_latency());
      CHECK(link.bytes_per_second >= network.least_bandwidth());
      if (spread.form == Spread::Form::uniform) CHECK(std::abs(ms - 50) <= 25);
    }
    constexpr double kLinks = 4950;
    CHECK(different.size() > 4900);
    CHECK(std::abs(sum / kLinks - 50) < 1.5);  // a standard error is at most 0.38
    CHECK(std::abs(bytes / kLinks / 1e7 - 1) < 0.03);
    const double deviation = std::sqrt(squares / kLinks - sum * sum / kLinks / kLinks) / 50;
    const double expected =
        spread.form == Spread::Form::uniform ? 0.5 / std::sqrt(3) : std::sqrt(std::exp(0.25) - 1);
    CHECK(std::abs(deviation / expected - 1) < 0.05);
    spec.seed = 1;
    CHECK(network_of(spec).link(3, 7).latency != network.link(3, 7).latency);
  }
  NetworkSpec even;
  even.latency_ms = 50;
  even.bandwidth_spread.width = 1;  // a factor of nothing
  CHECK(network_of(even).is_even());
}

TEST_CASE(
    "jitter: every chunk is delayed up to the jitter, in order on its link, keyed by the seed and "
    "independent of other senders") {
  const auto sent = [](std::uint64_t seed, bool another) {
    VirtualScheduler scheduler;
    Arrivals arrivals(scheduler), others(scheduler);
    SimulatedPort from, to;
    NetworkSpec spec;
    spec.latency_ms = 5;
    spec.jitter_ms = 20;
    spec.peers = 4;
    spec.seed = seed;
    const NetworkModel network(spec);
    const auto no_fault = [](const Error&) {};
    SimulatedLink link(scheduler, arrivals, network.link(1, 2), from, to, no_fault);
    SimulatedLink beside(scheduler, others, network.link(1, 3), from, to, no_fault);
    for (Round t = 0; t < 300; ++t)
      scheduler.at(t * 4ms, [&link, &beside, t, another] {
        link.send(Chunk({1, 2, t}, {}, Lease()));
        if (another) beside.send(Chunk({1, 3, t}, {}, Lease()));
      });
    scheduler.run();
    REQUIRE(arrivals.times.size() == 300);
    double late = 0;
    for (Round t = 0; t < 300; ++t) {
      CHECK(arrivals.rounds[t] == t);
      const Time travelled = arrivals.times[t] - t * 4ms;
      CHECK(travelled >= 5ms);
      CHECK(travelled <= 25ms);
      late += milliseconds(travelled) / 300;
    }
    CHECK(late > 14);  // 15 on the average, and more for chunks that must not overtake
    return arrivals.times;
  };
  const auto times = sent(0, false);
  CHECK(sent(0, false) == times);
  CHECK(sent(0, true) == times);
  CHECK(sent(1, false) != times);
}

TEST_CASE(
    "steps take log-normal times: keyed by peer and step, in one request or in several, their mean "
    "as given") {
  const StepTimes times{10ms, 1, 3, {.width = 0.6}, 7};
  double sum = 0, logarithms = 0, squares = 0;
  for (std::uint64_t step = 0; step < 10000; ++step) {
    const double ms = milliseconds(times.of(gradients(1, step)));
    sum += ms, logarithms += std::log(ms), squares += std::log(ms) * std::log(ms);
  }
  CHECK(std::abs(sum / 1e4 - 10) < 0.3);
  CHECK(std::abs(std::sqrt(squares / 1e4 - logarithms * logarithms / 1e8) - 0.6) < 0.02);
  CHECK(times.of(gradients(1, 5)) == times.of(gradients(1, 5)));
  CHECK(times.of(gradients(1, 5)) != times.of(gradients(2, 5)));
  CHECK(times.of(gradients(1, 5)) != times.of(gradients(1, 6)));
  const Time apart =
      times.of(gradients(1, 5)) + times.of(gradients(1, 6)) + times.of(gradients(1, 7));
  CHECK(std::abs((times.of(gradients(1, 5, 3)) - apart).count()) <=
        2);  // nanoseconds, of three roundings
  // A straggler's are its own draws, times the factor.
  const StepTimes even{10ms, 0, 1, {.width = 0.6}, 7};
  CHECK(milliseconds(times.of(gradients(0, 5))) ==
        doctest::Approx(3 * milliseconds(even.of(gradients(0, 5)))));
  CHECK(StepTimes{10ms, 1, 3}.of(gradients(0, 5, 2)) == 60ms);
}

TEST_CASE(
    "a synchronous round waits for its slowest step; jitter, uneven links and random steps change "
    "no bit") {
  PullTrainer trainer(6, 40, 0.1F);
  NetworkOptions random;
  random.step_time = 10ms;
  random.step_spread = 0.6;
  Network network("complete", 6, 40, random);
  network.run("dpsgd", {}, 10, &trainer);
  Time expected{0};
  const StepTimes times{10ms, 0, 1, {.width = 0.6}, kSeed};
  for (std::uint64_t step = 0; step < 10; ++step) {
    Time slowest{0};
    for (int peer = 0; peer < 6; ++peer)
      slowest = std::max(slowest, times.of(gradients(peer, step)));
    expected += slowest;
  }
  CHECK(network.virtual_time == expected);
  Network even("complete", 6, 40);
  CHECK(network.rows == even.run("dpsgd", {}, 10, &trainer).rows);

  NetworkSpec spec;
  spec.latency_ms = 30;
  spec.bandwidth_mbit_s = 0.1;
  spec.latency_spread.width = spec.bandwidth_spread.width = 1;
  spec.jitter_ms = 50;
  spec.peers = 6;
  const NetworkModel model(spec);
  random.link_model = [&model](int from, int to) { return model.link(from, to); };
  random.chunk_values = 7;
  Network uneven("complete", 6, 40, random);
  CHECK(uneven.run("dpsgd", {}, 10, &trainer).rows == network.rows);
  CHECK(uneven.virtual_time > network.virtual_time);
}
