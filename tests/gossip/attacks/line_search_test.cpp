// The search for the strength of an attack: against the mix of the rule itself, and in a network.
#include "gossip/mixing/line_search.hpp"

#include <algorithm>
#include <cmath>

#include "tests/gossip/rule_test_util.hpp"
#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

constexpr int kReceiver = 1;

/// Twelve peers on a complete graph with unequal weights, of which 3, 6 and 9 are hostile.
struct Attacked {
  std::vector<int> hostile{3, 6, 9};
  std::vector<std::vector<float>> rows;
  topology::MixingMatrix w;

  explicit Attacked(std::uint64_t seed) : w(weights()) {
    for (const testing::Vector& vector : normal_vectors(12, 20, seed))
      rows.emplace_back(vector.begin(), vector.end());
  }
  static std::vector<std::vector<topology::Neighbour>> weights() {
    std::vector<std::vector<topology::Neighbour>> all(12);
    for (int i = 0; i < 12; ++i)
      for (int j = 0; j < 12; ++j)
        if (i != j) all[static_cast<std::size_t>(i)].push_back({j, 0.05 + 0.005 * ((i * j) % 5)});
    return all;
  }
  AttackView view() const { return {0, 3, rows[3], w, hostile, rows}; }

  /// What the receiver makes of messages of the strength: ‖R(s) − Σ W x_k‖, k not hostile.
  double harm(const Attack& attack, const MixingRule& rule, double strength) const {
    const testing::Vector own(rows[kReceiver].begin(), rows[kReceiver].end());
    testing::Vectors sent{own};
    testing::Vector all{w.self_weight(kReceiver)}, honest{w.self_weight(kReceiver)};
    for (const topology::Neighbour& j : w.in_neighbours(kReceiver)) {
      const bool is_hostile = std::ranges::binary_search(hostile, j.peer);
      const auto& row = rows[static_cast<std::size_t>(j.peer)];
      sent.push_back(is_hostile ? attack.message(view(), kReceiver, strength)
                                : testing::Vector(row.begin(), row.end()));
      all.push_back(j.weight);
      honest.push_back(is_hostile ? 0 : j.weight);
      if (is_hostile) honest[0] += j.weight;
    }
    return distance(mixed(rule, sent, all), combined(sent, honest));
  }
};

}  // namespace

TEST_CASE("no tried strength does more harm to the mix of the rule: every rule and attack") {
  for (const AttackKind& kind : attacks::catalog()) {
    if (!kind.is_searchable()) continue;
    CAPTURE(kind.name);
    const auto attack = kind.make({}, {12, {3, 6, 9}, 5}).value()();
    for (const RuleKind& rule_kind : rules::catalog()) {
      const MixingRule rule =
          rule_kind.make(rule_kind.name == "mean" ? ParameterValues{} : testing::hostile(3))
              .value();
      if (rule.reads_losses()) continue;
      CAPTURE(rule_kind.name);
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const Attacked scene(seed);
        attack->observe(scene.view());
        attack->observe(scene.view());
        const double found = most_harmful_strength(*attack, scene.view(), kReceiver,
                                                   rule.is_mean() ? nullptr : &rule);
        CHECK(found >= 0);
        CHECK(found <= kLargestSearched);
        const double most = scene.harm(*attack, rule, found);
        // Those that the search tries whatever it finds, and its neighbourhood.
        for (const double other : {0.0, 1.0, found + 0.5, std::max(0.0, found - 0.5)}) {
          CAPTURE(other);
          // A search among 16 strengths finds a hill, and not always the highest.
          if (other <= 1) CHECK(scene.harm(*attack, rule, other) <= most * (1 + 1e-5) + 1e-9);
          else CHECK(scene.harm(*attack, rule, other) <= most * 1.5 + 1e-9);
        }
      }
    }
  }
}

TEST_CASE("the mean has no best strength: the search ends at its largest") {
  const Attacked scene(4);
  for (const char* name : {"ipm", "dissensus", "spectral_heterogeneity"}) {
    CAPTURE(name);
    const auto attack = find_attack(name)->make({}, {12, {3, 6, 9}, 5}).value()();
    attack->observe(scene.view());
    CHECK(most_harmful_strength(*attack, scene.view(), kReceiver, nullptr) == kLargestSearched);
  }
}

TEST_CASE("the searched strength of a clipped sum is where the message is clipped") {
  // Beyond the radius the message is clipped to it: more strength does no more harm.
  const Attacked scene(4);
  const MixingRule rule = rule_of("clipped", {{"hostile", std::int64_t{3}}, {"radius", 0.5}});
  const auto attack = find_attack("dissensus")->make({}, {12, {3, 6, 9}, 5}).value()();
  attack->observe(scene.view());
  const double found = most_harmful_strength(*attack, scene.view(), kReceiver, &rule);
  const double most = scene.harm(*attack, rule, found);
  for (const double strength : {10.0, 100.0, 1000.0})
    CHECK(scene.harm(*attack, rule, strength) <= most * (1 + 1e-6));
}

TEST_CASE("a network searches each message, and its bits do not depend on the order of arrival") {
  const MixingRule rule = rule_of("cs_plus", testing::hostile(1));
  AttackPlan plan{.hostile = {2, 6},
                  .reads_honest_rows = true,
                  .make = find_attack("alie")->make({}, {9, {2, 6}, 5}).value(),
                  .line_search = true};
  const auto rows_of = [&](NetworkOptions options) {
    options.rule = &rule;
    options.attack = &plan;
    Network network("complete", 9, 40, options);
    network.run("consensus", {{"length", std::int64_t{40}}}, 4);
    REQUIRE(network.fault == "");
    return network.rows;
  };
  const auto searched = rows_of({});
  NetworkOptions options;
  options.chunk_values = 7;
  options.threads = 3;
  options.link_model = [](int from, int to) {
    return LinkModel{std::chrono::milliseconds(1 + (7 * from + 5 * to) % 11), 0};
  };
  CHECK(rows_of(options) == searched);
  plan.line_search = false;
  for (const double strength : {0.5, 1.0, 2.0}) {
    plan.strength = strength;
    CHECK(rows_of({}) != searched);
  }
}
