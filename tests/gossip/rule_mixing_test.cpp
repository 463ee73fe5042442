// Mixing rules in a network: every rule under the policies, with losses, and with a hostile peer.
#include <algorithm>
#include <cmath>

#include "tests/gossip/rule_test_util.hpp"
#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

/// The rows after one round of `consensus` with the rule, computed by the formulas above.
Vectors one_round(const MixingRule& rule, const Network& network) {
  const auto w = network.matrices().at(0);
  Vectors after;
  for (int i = 0; i < network.peers(); ++i) {
    Vectors rows{Vector(network.start[static_cast<std::size_t>(i)].begin(),
                        network.start[static_cast<std::size_t>(i)].end())};
    Vector weights{w->self_weight(i)};
    for (const topology::Neighbour& j : w->in_neighbours(i)) {
      const auto& row = network.start[static_cast<std::size_t>(j.peer)];
      rows.emplace_back(row.begin(), row.end());
      weights.push_back(j.weight);
    }
    after.push_back(mixed(rule, rows, weights));
  }
  return after;
}

}  // namespace

TEST_CASE("a mix of a network is the rule's: every rule, under sync and deadline") {
  for (const RuleKind& kind : rules::catalog()) {
    CAPTURE(kind.name);
    const MixingRule rule = kind.make({}).value();
    for (const Policy policy : {Policy::sync, Policy::deadline}) {
      NetworkOptions options;
      options.policy = policy;
      options.rule = rule.is_mean() ? nullptr : &rule;
      options.chunk_values = 7;
      Network network("torus", 9, 40, options);
      const Vectors expected = one_round(rule, network);
      network.run("consensus", {{"length", std::int64_t{40}}}, 1);
      REQUIRE(network.fault == "");
      for (std::size_t i = 0; i < 9; ++i)
        for (std::size_t k = 0; k < 40; ++k)
          CHECK(network.rows[i][k] == doctest::Approx(expected[i][k]).epsilon(1e-5));
    }
  }
}

TEST_CASE(
    "equal rows stay as they are, to the bit, and one or no neighbour is enough: every rule") {
  for (const RuleKind& kind : rules::catalog()) {
    CAPTURE(kind.name);
    const MixingRule rule = kind.make({}).value();
    NetworkOptions options;
    options.rule = rule.is_mean() ? nullptr : &rule;
    for (const auto& [graph, n] :
         {std::pair("complete", 6), std::pair("ring", 2), std::pair("ring", 1)}) {
      CAPTURE(graph);
      CAPTURE(n);
      Network network(graph, n, 33, options);
      network.run("consensus", {{"length", std::int64_t{33}}}, 5);
      REQUIRE(network.fault == "");
      for (const auto& row : network.rows)
        for (const float value : row) CHECK(std::isfinite(value));
      for (auto& row : network.start) row = network.start.front();
      const auto same = network.start;
      network.run("consensus", {{"length", std::int64_t{33}}}, 5);
      CHECK(network.rows == same);
    }
  }
}

TEST_CASE("the order of arrival, the chunks and the alignment change no bit: every rule") {
  for (const RuleKind& kind : rules::catalog()) {
    CAPTURE(kind.name);
    const MixingRule rule = kind.make({}).value();
    NetworkOptions options;
    options.rule = rule.is_mean() ? nullptr : &rule;
    Network expected("complete", 6, 200, options);
    expected.run("consensus", {{"length", std::int64_t{200}}}, 6);
    options.chunk_values = 64;
    options.row_offset = 1;
    options.threads = 3;
    options.link_model = [](int from, int to) {
      return LinkModel{std::chrono::milliseconds(1 + (7 * from + 5 * to) % 11), 0};
    };
    Network network("complete", 6, 200, options);
    network.run("consensus", {{"length", std::int64_t{200}}}, 6);
    CHECK(network.fault == "");
    CHECK(network.rows == expected.rows);
    CHECK(network.values_sent == expected.values_sent);
  }
}

TEST_CASE("a hostile peer, from which a mean runs away, does not move the others: every rule") {
  for (const RuleKind& kind : rules::catalog()) {
    CAPTURE(kind.name);
    const MixingRule rule = kind.make({}).value();
    for (const Policy policy : {Policy::sync, Policy::deadline, Policy::stale, Policy::async}) {
      NetworkOptions options;
      options.policy = policy;
      options.rule = rule.is_mean() ? nullptr : &rule;
      options.tamper = [](const ChunkHeader& header, std::span<float> values) {
        if (header.from == 2)
          for (float& value : values) value = 1e6F;
      };
      Network network("complete", 7, 12, options);
      network.run("consensus", {{"length", std::int64_t{12}}}, 10);
      REQUIRE(network.fault == "");
      float largest = 0;
      for (std::size_t i = 0; i < 7; ++i)
        for (const float value : network.rows[i])
          if (i != 2) largest = std::max(largest, std::abs(value));
      if (rule.is_mean()) CHECK(largest > 1e4F);
      else CHECK(largest < 10.0F);
    }
  }
}

TEST_CASE("ubar measures the candidates' losses on the receiver's samples") {
  const MixingRule rule = rule_of("ubar", {{"hostile", std::int64_t{1}}, {"own_weight", 0.5}});
  constexpr int kPeers = 5;
  constexpr std::size_t kLength = 12;
  constexpr float kRate = 0.05F;
  PullTrainer trainer(kPeers, kLength, kRate);
  NetworkOptions options;
  options.rule = &rule;
  Network network("complete", kPeers, kLength, options);
  // After the local step, peer i has the row x_i + rate (b_i − x_i), and the loss ½ ‖x − b_i‖².
  Vectors rows, targets;
  for (int i = 0; i < kPeers; ++i) {
    const auto& start = network.start[static_cast<std::size_t>(i)];
    targets.emplace_back(trainer.target(i).begin(), trainer.target(i).end());
    rows.emplace_back(start.begin(), start.end());
    for (std::size_t k = 0; k < kLength; ++k)
      rows.back()[k] += kRate * (targets.back()[k] - rows.back()[k]);
  }
  Vectors expected;
  int dropped = 0;
  for (std::size_t i = 0; i < kPeers; ++i) {
    std::vector<std::size_t> near;
    for (std::size_t j = 0; j < kPeers; ++j)
      if (j != i) near.push_back(j);
    std::ranges::sort(near, {}, [&](std::size_t j) { return distance(rows[i], rows[j]); });
    near.pop_back();
    std::vector<std::size_t> good;
    for (const std::size_t j : near)
      if (distance(rows[j], targets[i]) <= distance(rows[i], targets[i])) good.push_back(j);
    dropped += static_cast<int>(near.size() - good.size());
    if (good.empty())
      good = {*std::ranges::min_element(
          near, {}, [&](std::size_t j) { return distance(rows[j], targets[i]); })};
    Vector weights(kPeers, 0.0);
    weights[i] = 0.5;
    for (const std::size_t j : good) weights[j] = 0.5 / static_cast<double>(good.size());
    expected.push_back(combined(rows, weights));
  }
  CHECK(dropped > 0);
  network.run("dpsgd", {}, 1, &trainer);
  REQUIRE(network.fault == "");
  for (std::size_t i = 0; i < kPeers; ++i)
    for (std::size_t k = 0; k < kLength; ++k)
      CHECK(network.rows[i][k] == doctest::Approx(expected[i][k]).epsilon(1e-4));
}

TEST_CASE("a lost neighbour is left out, and its weight stays with the own row: every rule") {
  using namespace std::chrono_literals;
  for (const RuleKind& kind : rules::catalog()) {
    CAPTURE(kind.name);
    const MixingRule rule = kind.make({}).value();
    NetworkOptions options;
    options.rule = rule.is_mean() ? nullptr : &rule;
    options.tolerates_peer_loss = true;
    options.links = {1ms, 0};
    options.deaths = {{3, 4500us}};
    Network network("complete", 7, 12, options);
    network.run("consensus", {{"length", std::int64_t{12}}}, 30);
    CHECK(network.fault == "");
    CHECK(network.finished == 6);
    CHECK_FALSE(network.deviations.empty());
    for (const auto& deviation : network.deviations) CHECK(deviation.from == 3);
    for (const auto& row : network.rows)
      for (const float value : row) CHECK(std::isfinite(value));
  }
}
