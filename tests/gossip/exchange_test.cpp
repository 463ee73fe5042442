// The exchange: what is mixed is W x, whatever the links, the pieces and the order of arrival.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tests/gossip/test_network.hpp"
#include "topology/report.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

/// Of rows x of ten values, which are mixed.
ExchangeOptions of_x(std::size_t chunk_values) {
  return {.chunk_values = chunk_values,
          .channels = channels_of({{.name = "x", .mixed = true}}, 10)};
}

struct Case {
  const char* kind;
  int n;
};
constexpr Case kCases[] = {
    {"ring", 5}, {"path", 4},     {"star", 6},      {"torus", 9},
    {"grid", 6}, {"complete", 7}, {"hypercube", 8}, {"one_peer_exponential", 6},
    {"ring", 2}, {"ring", 1}};

/// Latencies that differ by link, so that neighbours' rows come in any order.
LinkModel uneven_link(int from, int to) {
  return {1ms * ((from * 7 + to * 3) % 11), 1e6 * (1 + (from + to) % 3)};
}

}  // namespace

TEST_CASE(
    "mixing is W^k x, and the same bits for every chunk size, link, thread count and alignment") {
  for (const Case& c : kCases) {
    CAPTURE(c.kind);
    constexpr std::size_t kLength = 1003;
    Network plain(c.kind, c.n, kLength);
    plain.run("consensus", {}, 12);
    CHECK(plain.finished == c.n);
    CHECK(largest_difference(plain.rows, mixed_in_double(plain.matrices(), plain.start, 12)) <
          1e-5);

    NetworkOptions small_chunks, slow, threads, misaligned;
    small_chunks.chunk_values = 7;
    slow.link_model = uneven_link;
    slow.chunk_values = 100;
    threads.threads = 3;
    misaligned.row_offset = 1;
    for (const NetworkOptions& options : {small_chunks, slow, threads, misaligned}) {
      Network other(c.kind, c.n, kLength, options);
      CHECK(other.run("consensus", {}, 12).rows == plain.rows);
      CHECK(other.fault == "");
    }
  }
}

TEST_CASE("consensus is exactly a fixed point") {
  for (const Case& c : kCases) {
    Network network(c.kind, c.n, 100);
    std::fill(network.start.begin(), network.start.end(), network.start.front());
    CHECK(network.run("consensus", {}, 20).rows == network.start);
  }
}

TEST_CASE("bytes: the frames to every out-neighbour, of every chunk") {
  NetworkOptions options;
  options.chunk_values = 30;  // 100 values: 4 chunks
  Network network("ring", 5, 100, options);
  network.run("consensus", {}, 3);
  for (std::uint64_t bytes : network.bytes_sent)
    CHECK(bytes == 3 * 2 * (100 * sizeof(float) + 4 * kFrameOverheadBytes));
}

TEST_CASE("virtual time is latency plus bytes over bandwidth plus compute") {
  NetworkOptions options;
  options.links = {10ms, 1e6};
  options.step_time = 5ms;
  PullTrainer trainer(4, 1000, 0.1F);
  Network network("ring", 4, 1000, options);
  network.run("dpsgd", {}, 2, &trainer);
  // A peer's two links send side by side; a round is a step, then one row: 4,000 bytes and a
  // frame's overhead.
  const double seconds = 2 * (0.005 + 0.010 + (4000 + kFrameOverheadBytes) / 1e6);
  CHECK(std::chrono::duration<double>(network.virtual_time).count() ==
        doctest::Approx(seconds).epsilon(1e-9));
}

TEST_CASE(
    "adapt-while-communicate takes the longer of computing and communicating, not their sum") {
  NetworkOptions options;
  options.links = {10ms, 0};
  options.step_time = 8ms;
  PullTrainer trainer(4, 10, 0.1F);
  Network network("ring", 4, 10, options);
  network.run("dpsgd", {{"order", std::string("awc")}}, 3, &trainer);
  CHECK(network.virtual_time == 30ms);
  network.run("dpsgd", {{"order", std::string("atc")}}, 3, &trainer);
  CHECK(network.virtual_time == 54ms);
}

TEST_CASE("peers that train together are one batch") {
  PullTrainer trainer(16, 10, 0.1F);
  Network network("torus", 16, 10);
  network.run("dpsgd", {}, 5, &trainer);
  CHECK(trainer.largest_batch == 16);
  CHECK(trainer.batches == 5);
}

TEST_CASE(
    "async never waits: a slow link leaves the others' rounds alone, and each stale row is on "
    "record") {
  NetworkOptions options;
  options.policy = Policy::async;
  options.step_time = 1ms;
  options.link_model = [](int from, int) { return LinkModel{from == 0 ? 20ms : 100us, 0}; };
  PullTrainer trainer(5, 10, 0.05F);
  Network network("ring", 5, 10, options);
  network.run("dpsgd", {}, 200, &trainer);
  CHECK(network.finished == 5);
  CHECK(network.virtual_time < 225ms);  // 200 steps, and the last slow rows on their way
  int missing = 0, stale = 0;
  for (const Deviation& deviation : network.deviations) (deviation.missing ? missing : stale) += 1;
  CHECK(missing > 0);
  CHECK(stale > 200);
  // Pulled apart by b_i and together by mixing: near the optimum, though not on it.
  const auto optimum = trainer.optimum();
  for (const auto& row : network.rows)
    for (std::size_t k = 0; k < row.size(); ++k) CHECK(std::abs(row[k] - optimum[k]) < 1.0);
}

TEST_CASE("async is deterministic in virtual time") {
  NetworkOptions options;
  options.policy = Policy::async;
  options.step_time = 1ms;
  options.link_model = uneven_link;
  options.chunk_values = 3;
  PullTrainer trainer(6, 10, 0.05F);
  Network first("star", 6, 10, options), second("star", 6, 10, options);
  CHECK(first.run("dpsgd", {}, 50, &trainer).rows == second.run("dpsgd", {}, 50, &trainer).rows);
}

TEST_CASE("what breaks the protocol is an error that names the sender, never a crash") {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device(1);
  Compute compute(scheduler, executor, device, nullptr, StepTimes{});
  const auto matrices = schedule("ring", 4);
  std::string fault;
  Exchange exchange(scheduler, compute, *matrices, of_x(8), {1},
                    [&](Error error) { fault = error.message; });
  std::vector<float> values(8, 1.0F);
  const auto deliver = [&](ChunkHeader header, std::size_t count) {
    const Status status = exchange.deliver(Chunk(header, std::span(values).first(count), Lease()));
    return status.ok() ? std::string() : status.error().message;
  };
  CHECK(deliver({2, 1, 0, 0, 0, 10}, 8) == "");
  CHECK(deliver({2, 1, 0, 0, 0, 10}, 8).find("peer 2 broke the protocol towards peer 1") ==
        0);                                      // chunk 0 again
  CHECK(deliver({2, 1, 0, 0, 8, 11}, 2) != "");  // another length
  CHECK(deliver({2, 1, 1, 0, 8, 10}, 2) != "");  // another round
  CHECK(deliver({2, 1, 0, 0, 8, 10}, 3) != "");  // past the end
  CHECK(deliver({2, 1, 0, 0, 8, 10}, 0) != "");  // nothing
  CHECK(deliver({2, 1, 0, 0, 8, 10}, 2) == "");
  CHECK(deliver({2, 1, 0, 3, 0, 10}, 8) != "");             // no such channel
  CHECK(deliver({2, 3, 0, 0, 0, 10}, 8) != "");             // not our peer
  CHECK(deliver({0, 1, 0, 0, ~0ULL - 3, ~0ULL}, 8) != "");  // overflow
  CHECK(deliver({0, 1, 0, 0, ~0ULL - 3, 2}, 8) != "");
  CHECK(fault == "");
}

TEST_CASE(
    "a chunk that arrives between a look at the inbox and the wait for an event is not missed") {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device(1);
  Compute compute(scheduler, executor, device, nullptr, StepTimes{});
  const auto matrices = schedule("path", 2);
  Exchange exchange(scheduler, compute, *matrices, of_x(16), {0}, [](Error) {});
  Rows<float> rows(2, 10);
  const std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
  Node node(exchange, 0, 2, specs, {{rows.row(0)}, {rows.row(1)}, {}, {}});
  const std::vector<float> values(10);
  const auto in_neighbours = [](Node& of) -> task<void> {
    while (!of.peek_any(0)) co_await of.wait_event();
  };
  // After it has looked, and before the task that waits has begun: that goes through the
  // scheduler's queue.
  const auto delivers = [](Exchange& to, std::span<const float> row) -> task<void> {
    CHECK(to.deliver(Chunk({1, 0, 0, 0, 0, 10}, row, Lease())).ok());
    co_return;
  };
  task<void> hearing = in_neighbours(node), delivering = delivers(exchange, values);
  hearing.start(scheduler);
  delivering.start(scheduler);
  scheduler.run();
  CHECK(delivering.done());
  CHECK(hearing.done());
}

TEST_CASE(
    "a row of the wrong round or length ends the run with the reason, where no handler can lose "
    "its "
    "link") {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device(1);
  Compute compute(scheduler, executor, device, nullptr, StepTimes{});
  const auto matrices = schedule("path", 2);
  for (const ChunkHeader& header :
       {ChunkHeader{1, 0, 5, 0, 0, 10}, ChunkHeader{1, 0, 0, 0, 0, 9}}) {
    std::string fault;
    Exchange exchange(scheduler, compute, *matrices, of_x(16), {0},
                      [&](Error error) { fault = error.message; });
    SimulatedPort port;
    SimulatedLink nowhere(scheduler, exchange, {1h, 0}, port, port, [](Error) {});
    exchange.connect(0, 1, nowhere);
    Rows<float> rows(2, 10);
    const std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
    NodeMemory memory{{rows.row(0)}, {rows.row(1)}, {}, {}};
    std::vector<float> values(header.total);
    CHECK(exchange.deliver(Chunk(header, values, Lease())).ok());
    Node node(exchange, 0, 2, specs, memory);
    task<void> mixing = node.mix(0, 0);
    mixing.start(scheduler);
    scheduler.run();
    CHECK_FALSE(mixing.done());
    CHECK(fault.find("peer 1 broke the protocol towards peer 0 ") == 0);
  }
}

namespace {

/// A link's buffer, which has other contents once its lease has ended.
struct Buffer final : BufferOwner {
  explicit Buffer(std::size_t length) : values(length, 1) {}
  void on_lease_end() override {
    for (float& value : values) value = std::numeric_limits<float>::quiet_NaN();
  }
  std::vector<float> values;
};

}  // namespace

TEST_CASE("the chunks of a lost peer stay unchanged until the pieces that read them are mixed") {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device(1);
  Compute compute(scheduler, executor, device, nullptr, StepTimes{});
  const auto matrices = schedule("complete", 3);
  Exchange exchange(scheduler, compute, *matrices, of_x(16), {0}, [](const Error&) {});
  SimulatedPort port;
  SimulatedLink nowhere(scheduler, exchange, {1h, 0}, port, port, [](const Error&) {});
  exchange.connect(0, 1, nowhere);
  exchange.connect(0, 2, nowhere);
  Rows<float> rows(2, 10);
  const std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
  Node node(exchange, 0, 3, specs, {{rows.row(0)}, {rows.row(1)}, {}, {}});
  task<void> mixing = node.mix(0, 0);
  mixing.start(scheduler);
  Buffer whole(10), half(5), rest(5);
  // In one breath, as from the network: a row, half of another, and the end of the first one's
  // link.
  scheduler.after(1ms, [&] {
    CHECK(exchange.deliver(Chunk({1, 0, 0, 0, 0, 10}, whole.values, Lease(whole))).ok());
    CHECK(exchange.deliver(Chunk({2, 0, 0, 0, 0, 10}, half.values, Lease(half))).ok());
    exchange.endpoint(0).on_link_lost(1);
    CHECK(exchange.deliver(Chunk({2, 0, 0, 0, 5, 10}, rest.values, Lease(rest))).ok());
  });
  scheduler.run();
  REQUIRE(mixing.done());
  for (std::size_t i = 0; i < 10; ++i)
    CHECK(node.x()[i] == doctest::Approx(i < 5 ? 2.0 / 3 : 1.0 / 3));
  CHECK(std::isnan(whole.values[0]));
}

TEST_CASE("a policy takes its own control messages, and rows that are mixed or shared") {
  using enum ControlMessage;
  const std::map<Policy, std::set<ControlMessage>> taken{
      {Policy::sync, {}},
      {Policy::deadline, {query, skip}},  // peer 0 decides, so it takes no decision
      {Policy::stale, {finished}},
      {Policy::async, {finished}}};
  for (const auto& [policy, messages] : taken) {
    CAPTURE(static_cast<int>(policy));
    VirtualScheduler scheduler;
    InlineExecutor executor;
    gpu::CpuDevice device(1);
    Compute compute(scheduler, executor, device, nullptr, StepTimes{});
    const auto matrices = schedule("path", 2);
    ExchangeOptions options = of_x(16);
    options.policy = policy;
    Exchange exchange(scheduler, compute, *matrices, options, {0}, [](const Error&) {});
    SimulatedPort port;
    SimulatedLink nowhere(scheduler, exchange, {1h, 0}, port, port, [](const Error&) {});
    exchange.connect(0, 1, nowhere);
    for (const ControlMessage message : {commit, decline, query, skip, finished}) {
      CAPTURE(static_cast<int>(message));
      CHECK(exchange.deliver(Chunk(control_header(1, 0, message, 0), {}, {})).ok() ==
            messages.contains(message));
    }
    const std::vector<float> values(10);
    const auto row_of = [&](Channel channel) {
      return Chunk({1, 0, 0, channel, 0, 10}, values, {});
    };
    CHECK(exchange.deliver(row_of(0)).ok());
    // The gradient's channel: under sync an algorithm may receive it itself.
    CHECK(exchange.deliver(row_of(1)).ok() == (policy == Policy::sync));
  }
}
