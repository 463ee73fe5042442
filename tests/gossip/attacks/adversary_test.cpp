// The adversary in a network: its messages are those of the formulas, and change no bit of honest
// rounds.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "gossip/attack.hpp"
#include "tests/gossip/rule_test_util.hpp"
#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

constexpr std::uint64_t kAdversarySeed = 7;

AttackPlan plan_of(const std::string& name, std::vector<int> hostile, double strength,
                   const ParameterValues& values = {}) {
  const AttackKind kind = find_attack(name).value();
  return {.hostile = hostile,
          .reads_honest_rows = kind.reads_honest_rows,
          .make = kind.make(values, {9, hostile, kAdversarySeed}).value(),
          .strength = strength};
}

}  // namespace

TEST_CASE("a round of a network mixes the messages of the formulas: every attack") {
  // Peers 2 and 6 of a torus of 9 are hostile; with the mean, x_i + Σ W_ij (x_j − x_i).
  for (const AttackKind& kind : attacks::catalog()) {
    if (!kind.make) continue;
    CAPTURE(kind.name);
    const AttackPlan plan = plan_of(kind.name, {2, 6}, 0.7);
    NetworkOptions options;
    options.attack = &plan;
    options.chunk_values = 7;
    Network network("torus", 9, 40, options);
    network.run("consensus", {{"length", std::int64_t{40}}}, 1);
    REQUIRE(network.fault == "");
    const auto w = network.matrices().at(0);
    std::vector<std::unique_ptr<Attack>> attacks(9);
    for (const int peer : plan.hostile) {
      attacks[static_cast<std::size_t>(peer)] = plan.make();
      const auto& own = network.start[static_cast<std::size_t>(peer)];
      attacks[static_cast<std::size_t>(peer)]->observe(
          {0, peer, own, *w, plan.hostile, network.start});
    }
    for (int i = 0; i < 9; ++i) {
      const auto& start = network.start[static_cast<std::size_t>(i)];
      testing::Vector expected(start.begin(), start.end());
      for (const topology::Neighbour& j : w->in_neighbours(i)) {
        const auto& row = network.start[static_cast<std::size_t>(j.peer)];
        testing::Vector sent(row.begin(), row.end());
        if (plan.is_hostile(j.peer) && !plan.is_hostile(i))
          sent = attacks[static_cast<std::size_t>(j.peer)]->message(
              {0, j.peer, row, *w, plan.hostile, network.start}, i, plan.strength);
        for (std::size_t k = 0; k < 40; ++k)
          expected[k] += j.weight * (sent[k] - static_cast<double>(start[k]));
      }
      for (std::size_t k = 0; k < 40; ++k)
        CHECK(network.rows[static_cast<std::size_t>(i)][k] ==
              doctest::Approx(expected[k]).epsilon(1e-4));
    }
  }
}

TEST_CASE("the order of arrival, the chunks and the alignment change no bit: every attack") {
  const MixingRule median = rule_of("median");
  for (const AttackKind& kind : attacks::catalog()) {
    if (!kind.make) continue;
    for (const MixingRule* rule : {static_cast<const MixingRule*>(nullptr), &median}) {
      CAPTURE(kind.name);
      const AttackPlan plan = plan_of(kind.name, {0, 5}, 0.7);
      NetworkOptions options;
      options.attack = &plan;
      options.rule = rule;
      Network expected("torus", 9, 200, options);
      expected.run("consensus", {{"length", std::int64_t{200}}}, 6);
      REQUIRE(expected.fault == "");
      options.chunk_values = 64;
      options.row_offset = 1;
      options.threads = 3;
      options.link_model = [](int from, int to) {
        return LinkModel{std::chrono::milliseconds(1 + (7 * from + 5 * to) % 11), 0};
      };
      Network network("torus", 9, 200, options);
      network.run("consensus", {{"length", std::int64_t{200}}}, 6);
      CHECK(network.fault == "");
      CHECK(network.rows == expected.rows);
      CHECK(network.values_sent == expected.values_sent);
    }
  }
}

TEST_CASE("rounds before the first one of the attack are honest, and the bytes are the same") {
  AttackPlan plan = plan_of("ipm", {3}, 5);
  plan.from = 4;
  const auto rows_after = [](Round rounds, const AttackPlan* attack) {
    NetworkOptions options;
    options.attack = attack;
    Network network("complete", 9, 20, options);
    network.run("consensus", {{"length", std::int64_t{20}}}, rounds);
    CHECK(network.fault == "");
    return std::pair(network.rows, network.bytes_sent);
  };
  CHECK(rows_after(4, &plan) == rows_after(4, nullptr));
  CHECK(rows_after(5, &plan).first != rows_after(5, nullptr).first);
  CHECK(rows_after(5, &plan).second == rows_after(5, nullptr).second);
}

TEST_CASE("hostile peers in processes of their own send the messages that need no other rows") {
  for (const AttackKind& kind : attacks::catalog()) {
    if (!kind.make || kind.reads_honest_rows) continue;
    CAPTURE(kind.name);
    const AttackPlan plan = plan_of(kind.name, {1, 2}, 0.7);
    NetworkOptions options;
    options.attack = &plan;
    Network together("complete", 6, 20, options);
    together.run("consensus", {{"length", std::int64_t{20}}}, 5);
    options.apart = true;
    Network apart("complete", 6, 20, options);
    apart.run("consensus", {{"length", std::int64_t{20}}}, 5);
    CHECK(apart.fault == "");
    CHECK(apart.rows == together.rows);
  }
}

namespace {

/// Eight rounds of six peers on a complete graph; a step takes longer than a message. `plan`
/// outlives the run.
struct SilenceRun {
  SilenceRun(const AttackPlan& plan, Policy policy)
      : network("complete", 6, 20, options_of(plan, policy)) {
    network.run("dpsgd", {}, 8, &trainer);
    REQUIRE(network.fault == "");
    CHECK(network.finished == 6);
  }
  static NetworkOptions options_of(const AttackPlan& plan, Policy policy) {
    NetworkOptions options;
    options.policy = policy;
    options.attack = &plan;
    options.step_time = std::chrono::milliseconds(3);
    options.links = {std::chrono::milliseconds(1), 0};
    return options;
  }

  PullTrainer trainer{6, 20, 0.05F};
  Network network;
};

}  // namespace

TEST_CASE("a silent round is every k-th one from the first, from hostile to honest peers") {
  const AttackPlan plan{.hostile = {1, 4}, .from = 3, .silent_every = 2};
  for (Round t = 0; t < 9; ++t) CHECK(plan.withholds(1, 0, t) == (t >= 3 && t % 2 == 1));
  CHECK_FALSE(plan.withholds(1, 4, 3));
  CHECK_FALSE(plan.withholds(0, 1, 3));
  CHECK_FALSE(plan_of("ipm", {1}, 1).withholds(1, 0, 0));
  CHECK(find_attack("silence")->silent_every({{"every", std::int64_t{5}}}).value() == 5);
}

TEST_CASE("silence under deadline: both ends mix without the other's row, and nobody else does") {
  const AttackPlan plan{.hostile = {0, 3}, .from = 1, .silent_every = 1};
  const SilenceRun run(plan, Policy::deadline);
  std::set<std::tuple<int, Round, int>> expected, missing;
  for (const auto& deviation : run.network.deviations)
    missing.insert({deviation.peer, deviation.round, deviation.from});
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j)
      for (Round t = 1; t < 8; ++t)
        if (plan.is_hostile(i) != plan.is_hostile(j)) expected.insert({i, t, j});
  CHECK(missing == expected);
  CHECK(run.network.deviations.size() == expected.size());
}

TEST_CASE(
    "silence under async: honest peers never have a hostile row, and hostile ones have theirs") {
  const AttackPlan plan{.hostile = {0, 3}, .silent_every = 1};
  const SilenceRun run(plan, Policy::async);
  std::map<std::pair<bool, bool>, int> missing;  // by whether receiver and sender are hostile
  for (const auto& deviation : run.network.deviations)
    if (deviation.missing)
      ++missing[{plan.is_hostile(deviation.peer), plan.is_hostile(deviation.from)}];
  CHECK(missing[{false, true}] == 4 * 2 * 8);
  CHECK(missing[{true, false}] <= 2 * 4);  // in the first round alone
  CHECK(missing[{false, false}] <= 4 * 3);
}

TEST_CASE("a message beyond the bound on values is cut to it") {
  const AttackPlan plan = plan_of("noise", {1}, 1e30);
  NetworkOptions options;
  options.attack = &plan;
  Network network("complete", 6, 20, options);
  network.run("consensus", {{"length", std::int64_t{20}}}, 1);
  CHECK(network.fault == "");
  for (const float value : network.rows[0]) CHECK(std::abs(value) > 1e16F);
}

TEST_CASE("an unknown attack is an error that lists the kinds") {
  const auto unknown = find_attack("magic");
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message.find("unknown attack 'magic'; there are: alie, ") !=
        std::string::npos);
}
