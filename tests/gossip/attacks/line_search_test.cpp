// The search for the strength of an attack: against the mix of the rule itself, and in a network.
#include "gossip/mixing/line_search.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

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

namespace {

/// The search once more, on the mix of the rule itself.
double climbed(const std::function<double(double)>& harm) {
  double best = 0, step = 1;
  std::map<double, double> tried{{0, harm(0)}};
  const auto better = [&](double strength) {
    if (strength < 0 || tried.contains(strength) || tried.size() == 16) return false;
    tried[strength] = harm(strength);
    if (tried[strength] <= tried[best] * (1 + 5e-7)) return false;
    best = strength;
    return true;
  };
  while (better(best + step)) step *= 2;
  while (tried.size() < 16) {
    step /= 2;
    if (!better(best + step)) better(best - step);
  }
  return best;
}

}  // namespace

TEST_CASE("the search finds as much harm as one on the mixes themselves: every rule and attack") {
  for (const AttackKind& kind : attacks::catalog()) {
    if (!kind.is_searchable()) continue;
    CAPTURE(kind.name);
    const auto attack = kind.make({}, {12, {3, 6, 9}, 5}).value()();
    for (const RuleKind& rule_kind : rules::catalog()) {
      if (rule_kind.name == "mean") continue;
      const MixingRule rule = rule_kind.make(testing::hostile(3)).value();
      if (rule.reads_losses()) continue;
      CAPTURE(rule_kind.name);
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const Attacked scene(seed);
        attack->observe(scene.view());
        const double found = most_harmful_strength(*attack, scene.view(), kReceiver, &rule);
        const auto harm = [&](double strength) { return scene.harm(*attack, rule, strength); };
        const double expected = climbed(harm);
        CHECK(harm(found) == doctest::Approx(harm(expected)).epsilon(1e-5));
        if (harm(expected) > harm(0) * 1.01) CHECK(found > 0);
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

TEST_CASE("a network mixes messages of the searched strengths") {
  const MixingRule rule = rule_of("nearest_neighbour_mixing", testing::hostile(2));
  const AttackPlan plan{.hostile = {2, 6},
                        .reads_honest_rows = true,
                        .make = find_attack("alie")->make({}, {9, {2, 6}, 5}).value(),
                        .line_search = true};
  NetworkOptions options;
  options.rule = &rule;
  options.attack = &plan;
  Network network("complete", 9, 40, options);
  network.run("consensus", {{"length", std::int64_t{40}}}, 1);
  REQUIRE(network.fault == "");
  const auto w = network.matrices().at(0);
  const auto attack = plan.make();
  std::set<double> strengths;
  for (int i = 0; i < 9; ++i) {
    if (plan.is_hostile(i)) continue;
    const auto& start = network.start[static_cast<std::size_t>(i)];
    const AttackView view{0, 2, network.start[2], *w, plan.hostile, network.start};
    const double strength = most_harmful_strength(*attack, view, i, &rule);
    strengths.insert(strength);
    testing::Vectors sent{{start.begin(), start.end()}};
    testing::Vector weights{w->self_weight(i)};
    for (const topology::Neighbour& j : w->in_neighbours(i)) {
      const auto& row = network.start[static_cast<std::size_t>(j.peer)];
      sent.push_back(plan.is_hostile(j.peer) ? attack->message(view, i, strength)
                                             : testing::Vector(row.begin(), row.end()));
      weights.push_back(j.weight);
    }
    const testing::Vector expected = mixed(rule, sent, weights);
    for (std::size_t k = 0; k < 40; ++k)
      CHECK(network.rows[static_cast<std::size_t>(i)][k] ==
            doctest::Approx(expected[k]).epsilon(1e-4));
  }
  CHECK(strengths.size() > 1);  // each receiver has its own
}

TEST_CASE("searched strengths do not depend on the order of arrival") {
  for (const char* name : {"cs_plus", "median"}) {
    CAPTURE(name);
    const MixingRule rule = rule_of(name, testing::hostile(1));
    const AttackPlan plan{.hostile = {2, 6},
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
  }
}
