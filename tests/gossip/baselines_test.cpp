// What decentralised runs are compared with: the forms of all-reduce, parameter servers, federated
// averaging.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kBaselineLength = 100;

ParameterValues form(const std::string& name) { return {{"form", name}}; }
ParameterValues servers(std::int64_t count) { return {{"servers", count}}; }

/// A network that starts as the baselines do: all alike.
struct Alike : Network {
  Alike(int n, std::size_t length, NetworkOptions options = {})
      : Network("ring", n, length, std::move(options)) {
    std::fill(start.begin(), start.end(), start.front());
  }
};

/// sqrt( (1/n) Σ_i ‖x_i − x*‖² ) / ‖x*‖ over the peers.
double distance_to_optimum(const Network& network, const std::vector<double>& optimum) {
  double sum = 0, square = 0;
  for (std::size_t k = 0; k < optimum.size(); ++k) {
    square += optimum[k] * optimum[k];
    for (int i = 0; i < network.peers(); ++i) {
      const double difference = network.rows[static_cast<std::size_t>(i)][k] - optimum[k];
      sum += difference * difference / network.peers();
    }
  }
  return std::sqrt(sum / square);
}

/// Bytes of a message of `values` values in one chunk.
double message_bytes(std::size_t values) {
  return static_cast<double>(values * sizeof(float) + kFrameOverheadBytes);
}

}  // namespace

TEST_CASE(
    "all-reduce by root, all to all, and by servers: the same bits; by ring the same to rounding") {
  for (int n : {1, 2, 5}) {
    for (std::size_t length : {std::size_t{1}, std::size_t{37}, std::size_t{1000}}) {
      CAPTURE(n);
      CAPTURE(length);
      PullTrainer trainer(n, length, 0.2F);
      Alike root(n, length);
      root.run("allreduce", form("root"), 20, &trainer);
      CHECK(root.finished == n);
      for (const auto& row : root.rows) CHECK(row == root.rows.front());
      CHECK(Alike(n, length).run("allreduce", form("all_to_all"), 20, &trainer).rows == root.rows);
      for (std::int64_t s : {1, 2, 3}) {
        Alike served(n, length);
        served.run("server", servers(s), 20, &trainer);
        CHECK(served.fault == "");
        CHECK(served.finished == n + s);
        for (int i = 0; i < n; ++i)
          CHECK(served.rows[static_cast<std::size_t>(i)] == root.rows.front());
      }
      Alike ring(n, length);
      ring.run("allreduce", form("ring"), 20, &trainer);
      for (std::size_t k = 0; k < length; ++k)
        CHECK(ring.rows[0][k] == doctest::Approx(root.rows[0][k]).epsilon(1e-5));
    }
  }
}

TEST_CASE("bytes: rows through the root, all to all, and each server's part of them") {
  constexpr int n = 5;
  PullTrainer trainer(n, kBaselineLength, 0.1F);
  const auto row = static_cast<std::uint64_t>(message_bytes(kBaselineLength));
  Alike root(n, kBaselineLength);
  root.run("allreduce", form("root"), 3, &trainer);
  CHECK(root.bytes_sent ==
        std::vector<std::uint64_t>{3 * (n - 1) * row, 3 * row, 3 * row, 3 * row, 3 * row});
  Alike all(n, kBaselineLength);
  all.run("allreduce", form("all_to_all"), 3, &trainer);
  for (std::uint64_t bytes : all.bytes_sent) CHECK(bytes == 3 * (n - 1) * row);
  Alike served(n, kBaselineLength);
  served.run("server", servers(2), 3,
             &trainer);  // 7 lines of 16 values: 3 and 4, the last of them of 4 values
  const auto low = static_cast<std::uint64_t>(message_bytes(48)),
             high = static_cast<std::uint64_t>(message_bytes(52));
  for (int i = 0; i < n; ++i)
    CHECK(served.bytes_sent[static_cast<std::size_t>(i)] == 3 * (low + high));
  CHECK(served.bytes_sent[n] == 3 * n * low);
  CHECK(served.bytes_sent[n + 1] == 3 * n * high);
}

TEST_CASE("a server's down-link is what its workers wait for; a ring's time does not grow") {
  NetworkOptions options;
  options.ports = {1e6, 1e6};
  options.chunk_values = 10;  // 100 values: 10 chunks
  const double chunk = message_bytes(10) / 1e6, row = 10 * chunk;
  for (int n : {3, 8, 20}) {
    CAPTURE(n);
    PullTrainer trainer(n, kBaselineLength, 0.1F);
    Alike served(n, kBaselineLength, options), ring(n, kBaselineLength, options),
        reduced(n, kBaselineLength, options);
    served.run("server", {}, 1, &trainer);
    CHECK(seconds(served.virtual_time) ==
          doctest::Approx(2 * n * row));  // n rows in, then n rows out
    reduced.run("allreduce", form("root"), 1, &trainer);
    CHECK(seconds(reduced.virtual_time) == doctest::Approx(2 * (n - 1) * row));
    // Two rows out, and two in beside them.
    ring.run("dpsgd", {}, 1, &trainer);
    CHECK(std::abs(seconds(ring.virtual_time) / (2 * row) - 1) < 1e-6);
  }
}

TEST_CASE(
    "a lone transfer takes its size over the least bandwidth once, in one chunk or in many, and "
    "then the latency") {
  for (std::size_t chunk : {std::size_t{8}, std::size_t{100}}) {
    const double frames = std::ceil(100.0 / static_cast<double>(chunk));
    const double bytes = static_cast<double>(kBaselineLength * sizeof(float)) +
                         frames * static_cast<double>(kFrameOverheadBytes);
    struct Case {
      double up, link, down;
    };
    for (const Case& c : {Case{1e6, 0, 0}, Case{0, 0, 1e6}, Case{1e6, 0, 1e6}, Case{1e6, 3e6, 2e6},
                          Case{4e6, 1e6, 2e6}}) {
      NetworkOptions options;
      options.chunk_values = chunk;
      options.links = {5ms, c.link};
      options.ports = {c.up, c.down};
      Network network(schedule("path", 2), kBaselineLength, options);
      network.run("consensus", {}, 1);
      CHECK(seconds(network.virtual_time) == doctest::Approx(0.005 + bytes / 1e6));
    }
  }
}

TEST_CASE("slow senders share a fast down-link side by side") {
  // Five workers push at a fifth of what the server takes in: all five rows are there when one
  // would be.
  NetworkOptions options;
  options.links = {0ms, 1e6};
  options.ports = {0, 5e6};
  PullTrainer trainer(5, kBaselineLength, 0.1F);
  Alike network(5, kBaselineLength, options);
  network.run("server", {}, 1, &trainer);
  CHECK(seconds(network.virtual_time) == doctest::Approx(2 * message_bytes(kBaselineLength) / 1e6));
}

TEST_CASE("shared capacities, latencies and slow peers change no bit") {
  NetworkOptions slow;
  slow.links = {3ms, 2e6};
  slow.ports = {1e6, 1.5e6};
  slow.step_time = 2ms;
  slow.slow_peers = 2;
  slow.slow_factor = 10;
  slow.chunk_values = 7;
  for (const auto& [kind, values] :
       std::vector<std::pair<std::string, ParameterValues>>{{"dpsgd", {}},
                                                            {"allreduce", form("root")},
                                                            {"allreduce", form("all_to_all")},
                                                            {"server", servers(2)},
                                                            {"fedavg", {{"fraction", 0.5}}}}) {
    CAPTURE(kind);
    PullTrainer trainer(6, kBaselineLength, 0.1F);
    CHECK(Alike(6, kBaselineLength, slow).run(kind, values, 6, &trainer).rows ==
          Alike(6, kBaselineLength).run(kind, values, 6, &trainer).rows);
  }
}

TEST_CASE(
    "slow peers take their factor; synchronous rounds take the slowest's time, asynchronous ones "
    "do not") {
  NetworkOptions options;
  options.step_time = 1ms;
  options.slow_peers = 1;
  options.slow_factor = 10;
  PullTrainer trainer(5, 10, 0.1F);
  CHECK(Alike(5, 10, options).run("server", {}, 20, &trainer).virtual_time == 200ms);
  CHECK(Alike(5, 10, options).run("dpsgd", {}, 20, &trainer).virtual_time == 200ms);
  options.policy = Policy::async;
  Alike gossip(5, 10, options);
  gossip.run("dpsgd", {}, 20, &trainer);
  CHECK(gossip.virtual_time == 200ms);  // the slow one's own
  CHECK(gossip.deviations.size() >
        40);  // the others are done by then, and their neighbours' rows stale
}

TEST_CASE("an asynchronous server with one worker is plain SGD") {
  PullTrainer trainer(1, kBaselineLength, 0.1F);
  Alike served(1, kBaselineLength), alone(1, kBaselineLength);
  served.run("async_server", {}, 15, &trainer);
  alone.run("dpsgd", {}, 15, &trainer);
  CHECK(served.rows[0] == alone.rows[0]);
  CHECK(served.rows[1] == alone.rows[0]);
  CHECK(served.staleness.pushes == 15);
  CHECK(served.staleness.largest == 0);
}

TEST_CASE(
    "an asynchronous server: staleness is what others updated meanwhile, and a fast worker's is a "
    "slow one's lack") {
  // In step: each worker's push meets the n − 1 others'.
  PullTrainer trainer(4, kBaselineLength, 0.02F);
  NetworkOptions options;
  options.step_time = 1ms;
  Alike even(4, kBaselineLength, options);
  even.run("async_server", {}, 50, &trainer);
  CHECK(even.staleness.pushes == 200);
  CHECK(even.staleness.largest == 3);
  // One worker is ten times slower: thirty updates between its pull and its push, and the others do
  // not wait.
  options.step_time = 1ms;
  options.slow_peers = 1;
  options.slow_factor = 10;
  Alike uneven(4, kBaselineLength, options);
  uneven.run("async_server", {}, 50, &trainer);
  CHECK(uneven.virtual_time == 500ms);
  CHECK(uneven.staleness.largest >= 28);
  CHECK(uneven.staleness.largest <= 31);
  CHECK(uneven.run("async_server", {}, 50, &trainer).staleness.sum ==
        uneven.staleness.sum);  // deterministic
  Alike split(4, kBaselineLength, options);
  split.run("async_server", servers(3), 50, &trainer);
  CHECK(split.finished == 7);
}

TEST_CASE(
    "staleness bound: no worker is more than s rounds ahead, and 0 is synchronous with the sum of "
    "the "
    "gradients") {
  constexpr int n = 4;
  NetworkOptions options;
  options.step_time = 1ms;
  options.slow_peers = 1;
  options.slow_factor = 10;
  for (std::int64_t bound : {1, 3}) {
    PullTrainer trainer(n, kBaselineLength, 0.02F);
    Alike network(n, kBaselineLength, options);
    network.run("async_server", {{"staleness_bound", bound}}, 40, &trainer);
    CHECK(network.finished == n + 1);
    CHECK(network.virtual_time == 400ms);
    CHECK(network.staleness.largest ==
          static_cast<std::uint64_t>((bound + 1) * (n - 1)));  // before the slow one's first push
  }
  PullTrainer sum(n, kBaselineLength, 0.02F), mean(n, kBaselineLength, 0.08F);
  Alike bounded(n, kBaselineLength, options), synchronous(n, kBaselineLength);
  bounded.run("async_server", {{"staleness_bound", std::int64_t{0}}}, 30, &sum);
  synchronous.run("server", {}, 30, &mean);
  CHECK(bounded.staleness.largest == n - 1);
  for (std::size_t k = 0; k < kBaselineLength; ++k)
    CHECK(bounded.rows[0][k] == doctest::Approx(synchronous.rows[0][k]).epsilon(1e-5));
}

TEST_CASE(
    "synchronous servers and every form of all-reduce reach the optimum of data that differ") {
  PullTrainer trainer(16, 20, 0.2F);
  for (const auto& [kind, values] :
       std::vector<std::pair<std::string, ParameterValues>>{{"allreduce", form("ring")},
                                                            {"allreduce", form("root")},
                                                            {"allreduce", form("all_to_all")},
                                                            {"server", servers(1)},
                                                            {"server", servers(2)}})
    for (Round rounds : {150, 151, 300}) {
      Alike network(16, 20);
      network.run(kind, values, rounds, &trainer);
      CHECK(distance_to_optimum(network, trainer.optimum()) < 2e-6);
    }
}

namespace {

/// FedAvg and FedProx as their papers write them, in double, on the pull trainer: n_k = 3 + k
/// samples.
struct Federation {
  double fraction, dropout;
  int steps;
  double prox, rate;

  std::vector<int> chosen(int n, Round t) const {
    std::vector<std::uint32_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    RandomStream(kSeed, kNoPeer, Purpose::clients, t).shuffle(order);
    return {order.begin(), order.begin() + std::max(1L, std::lround(fraction * n))};
  }
  bool comes(int k, Round t) const {
    return RandomStream(kSeed, static_cast<std::uint32_t>(k), Purpose::clients, t).next_double() >=
           dropout;
  }

  std::vector<double> run(std::vector<double> x, int n, Round rounds, const PullTrainer& trainer) {
    empty_rounds = 0;
    for (Round t = 0; t < rounds; ++t) {
      std::vector<double> sum(x.size());
      double samples = 0;
      for (int k : chosen(n, t)) {
        if (!comes(k, t)) continue;
        std::vector<double> y = x;
        for (int s = 0; s < steps; ++s)
          for (std::size_t j = 0; j < y.size(); ++j)
            y[j] -=
                rate * (y[j] - static_cast<double>(trainer.target(k)[j]) + prox * (y[j] - x[j]));
        samples += 3 + k;
        for (std::size_t j = 0; j < y.size(); ++j) sum[j] += (3 + k) * y[j];
      }
      if (samples == 0) ++empty_rounds;
      else
        for (std::size_t j = 0; j < x.size(); ++j) x[j] = sum[j] / samples;
    }
    return x;
  }

  int empty_rounds = 0;
};

}  // namespace

TEST_CASE(
    "federated averaging is the papers' iteration, round by round: fractions, clients that vanish, "
    "the proximal term") {
  constexpr int n = 7;
  constexpr float kServerRate = 0.1F;
  PullTrainer trainer(n, 20, kServerRate);
  struct Case {
    double fraction, dropout, prox;
    int local_steps;  // 0: two epochs of two batches
  };
  for (const Case& c :
       {Case{1, 0, 0, 1}, Case{1, 0, 0, 5}, Case{0.3, 0, 0, 3}, Case{0.5, 0.4, 0, 2},
        Case{0.1, 0.5, 0.7, 4}, Case{1, 0, 2, 0}, Case{1, 1, 0, 1}}) {
    Federation paper{c.fraction, c.dropout, c.local_steps > 0 ? c.local_steps : 4, c.prox,
                     kServerRate};
    for (Round rounds : {1, 2, 3, 10, 40}) {
      CAPTURE(rounds);
      Alike network(n, 20);
      network.run("fedavg",
                  {{"fraction", c.fraction},
                   {"dropout", c.dropout},
                   {"prox", c.prox},
                   {"local_epochs", std::int64_t{2}},
                   {"local_steps", std::int64_t{c.local_steps}}},
                  rounds, &trainer);
      CHECK(network.fault == "");
      CHECK(network.finished == n + 1);
      const auto& first = network.start.front();
      const std::vector<double> expected =
          paper.run({first.begin(), first.end()}, n, rounds, trainer);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK(network.rows[n][k] == doctest::Approx(expected[k]).epsilon(1e-5));
      for (int k : paper.chosen(n, rounds))
        CHECK(network.rows[static_cast<std::size_t>(k)] == network.rows[n]);
    }
    if (c.dropout >= 0.5)
      CHECK(paper.empty_rounds > 0);  // a server without reports keeps its model
  }
}

TEST_CASE("federated averaging: bytes are those of the chosen and of the reporting clients") {
  constexpr int n = 10;
  PullTrainer trainer(n, kBaselineLength, 0.1F);
  const Federation paper{0.3, 0.5, 1, 0, 0.1};
  Alike network(n, kBaselineLength);
  network.run("fedavg", {{"fraction", 0.3}, {"dropout", 0.5}}, 20, &trainer);
  std::vector<std::uint64_t> expected(n + 1);
  for (Round t = 0; t < 20; ++t) {
    expected[n] += 3 * static_cast<std::uint64_t>(message_bytes(kBaselineLength));
    for (int k : paper.chosen(n, t))
      if (paper.comes(k, t))
        expected[static_cast<std::size_t>(k)] +=
            static_cast<std::uint64_t>(message_bytes(kBaselineLength));
  }
  CHECK(network.bytes_sent == expected);
}
