// Attacks: each message against its formula in double, and the adversary in a network.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
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

constexpr std::size_t kRowLength = 30;
constexpr std::uint64_t kAttackSeed = 11;

/// Six peers on a wheel-like graph with unequal weights, of which 1 and 4 are hostile.
struct Scene {
  topology::MixingMatrix w{{{{1, 0.1}, {2, 0.2}, {4, 0.3}, {5, 0.05}},
                            {{0, 0.1}, {3, 0.2}},
                            {{0, 0.2}, {3, 0.15}, {4, 0.25}},
                            {{1, 0.2}, {2, 0.15}},
                            {{0, 0.3}, {2, 0.25}},
                            {{0, 0.05}}}};
  std::vector<int> hostile{1, 4};
  std::vector<std::vector<float>> rows;

  explicit Scene(std::uint64_t seed = 5) {
    for (const testing::Vector& vector : normal_vectors(6, kRowLength, seed))
      rows.emplace_back(vector.begin(), vector.end());
  }
  AttackView view(int peer, Round t = 0) const {
    return {t, peer, rows[static_cast<std::size_t>(peer)], w, hostile, rows};
  }
  testing::Vector row(int peer) const {
    const auto& values = rows[static_cast<std::size_t>(peer)];
    return {values.begin(), values.end()};
  }
};

MakeAttack attack_of(const std::string& name, double strength, const ParameterValues& values = {}) {
  const auto kind = find_attack(name);
  REQUIRE(kind.ok());
  auto make = kind->make(values, {6, {1, 4}, strength, kAttackSeed});
  REQUIRE_MESSAGE(make.ok(), (make.ok() ? "" : make.error().message));
  return std::move(make).value();
}

testing::Vector message_of(const std::string& name, double strength, const AttackView& view,
                           int receiver) {
  const auto attack = attack_of(name, strength)();
  attack->observe(view);
  return attack->message(view, receiver);
}

void check_near(const testing::Vector& a, const testing::Vector& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == doctest::Approx(b[k]).epsilon(1e-12));
}

double strength_of(const std::string& name, int peers, int hostile) {
  return find_attack(name)->default_strength(peers, hostile).value();
}

AttackPlan plan_of(const std::string& name, std::vector<int> hostile, double strength,
                   const ParameterValues& values = {}) {
  const AttackKind kind = find_attack(name).value();
  return {.hostile = hostile,
          .reads_honest_rows = kind.reads_honest_rows,
          .make = kind.make(values, {9, hostile, strength, kAttackSeed}).value()};
}

}  // namespace

TEST_CASE("sign_flip sends −s x to every receiver") {
  const Scene scene;
  testing::Vector expected = scene.row(4);
  for (double& value : expected) value *= -2.5;
  check_near(message_of("sign_flip", 2.5, scene.view(4), 0), expected);
  check_near(message_of("sign_flip", 2.5, scene.view(4), 2), expected);
  CHECK(strength_of("sign_flip", 6, 2) == 1);
}

TEST_CASE("noise sends keyed normal numbers, others in each round and of each peer") {
  const Scene scene;
  RandomStream random(kAttackSeed, 4, Purpose::attack, 7);
  testing::Vector expected(kRowLength);
  for (double& value : expected) value = 200 * random.next_normal();
  CHECK(message_of("noise", 200, scene.view(4, 7), 0) == expected);
  CHECK(message_of("noise", 200, scene.view(4, 7), 2) == expected);
  CHECK(message_of("noise", 200, scene.view(4, 8), 0) != expected);
  CHECK(message_of("noise", 200, scene.view(1, 7), 0) != expected);
}

TEST_CASE("ipm sends −ε times the mean of the receiver's row and its honest neighbours'") {
  const Scene scene;  // peer 0 mixes 1, 2, 4 and 5, of which 2 and 5 are honest
  const testing::Vector expected =
      combined({scene.row(0), scene.row(2), scene.row(5)}, {-0.4 / 3, -0.4 / 3, -0.4 / 3});
  check_near(message_of("ipm", 0.4, scene.view(4), 0), expected);
  CHECK(message_of("ipm", 0.4, scene.view(1), 0) == message_of("ipm", 0.4, scene.view(4), 0));
}

TEST_CASE("alie sends z standard deviations below the mean, at each coordinate") {
  const Scene scene;
  const Vectors honest{scene.row(0), scene.row(2), scene.row(5)};
  testing::Vector expected(kRowLength);
  for (std::size_t k = 0; k < kRowLength; ++k) {
    const double mean = (honest[0][k] + honest[1][k] + honest[2][k]) / 3;
    double square = 0;
    for (const testing::Vector& row : honest) square += std::pow(row[k] - mean, 2) / 2;
    expected[k] = mean - 1.5 * std::sqrt(square);
  }
  check_near(message_of("alie", 1.5, scene.view(1), 0), expected);
}

TEST_CASE("the z of alie is that of its paper, and is refused where it is not positive") {
  // Baruch et al. 2019, Section 4: 50 workers, 24 of them corrupted, s = 2, z = 1.43 (of 24/26).
  CHECK(strength_of("alie", 50, 24) == doctest::Approx(1.4261).epsilon(1e-4));
  CHECK(strength_of("alie", 8, 3) == doctest::Approx(0.2533).epsilon(1e-3));  // Φ⁻¹(3/5)
  const auto none = find_attack("alie")->default_strength(8, 2);
  REQUIRE_FALSE(none.ok());
  CHECK(
      none.error().message ==
      "attack.strength: with 2 hostile of 8 peers the z of 'alie' is not positive, and the attack "
      "has no effect; set attack.strength to a z, as 1.5, or name more hostile peers");
  CHECK(find_attack("alie")->default_strength(8, 5).error().message.find("which is a majority") !=
        std::string::npos);
}

TEST_CASE("dissensus cancels the pull of the honest neighbours: a weighted mean does not move") {
  const Scene scene;
  const testing::Vector message = message_of("dissensus", 1, scene.view(4), 0);
  testing::Vector pull(kRowLength);  // of the honest neighbours 2 and 5
  for (std::size_t k = 0; k < kRowLength; ++k)
    pull[k] =
        0.2 * (scene.row(2)[k] - scene.row(0)[k]) + 0.05 * (scene.row(5)[k] - scene.row(0)[k]);
  for (std::size_t k = 0; k < kRowLength; ++k) {
    CHECK(message[k] == doctest::Approx(scene.row(0)[k] - pull[k] / 0.4).epsilon(1e-9));
    CHECK(pull[k] + (0.1 + 0.3) * (message[k] - scene.row(0)[k]) ==
          doctest::Approx(0).epsilon(1e-9));
  }
}

TEST_CASE("mimic finds the direction in which honest rows differ, and stays with one peer") {
  // Peers 0, 2, 3 and 5 are honest. They lie on a line along coordinate 3, beside small noise, and
  // 2 and 5 are its ends.
  const auto attack = attack_of("mimic", 1, {{"warmup", std::int64_t{20}}})();
  const auto scene_of = [](Round t, int far) {
    Scene scene(100 + t);
    for (auto& row : scene.rows)
      for (float& value : row) value *= 0.01F;
    scene.rows[2][3] = -4;
    scene.rows[5][3] = 4;
    if (far != 0) scene.rows[static_cast<std::size_t>(far)][3] = 100;
    return scene;
  };
  std::set<int> targets;
  for (Round t = 0; t < 20; ++t) {
    const Scene scene = scene_of(t, 0);
    attack->observe(scene.view(4, t));
    const testing::Vector message = attack->message(scene.view(4, t), 0);
    for (const int peer : {0, 2, 3, 5})
      if (message == scene.row(peer)) targets.insert(peer);
  }
  REQUIRE(targets.size() == 1);  // z keeps its sign
  const int target = *targets.begin();
  CHECK((target == 2 || target == 5));
  const Scene later = scene_of(30, 3);  // another peer is farther now, but the warm-up is over
  attack->observe(later.view(4, 30));
  CHECK(attack->message(later.view(4, 30), 0) == later.row(target));
}

TEST_CASE("stale sends the row of k rounds ago, and at first the oldest") {
  const auto attack = attack_of("stale", 1, {{"lag", std::int64_t{3}}})();
  for (Round t = 0; t < 8; ++t) {
    const Scene scene(t);
    attack->observe(scene.view(4, t));
    CHECK(attack->message(scene.view(4, t), 2) == Scene(t < 3 ? 0 : t - 3).row(4));
  }
}

TEST_CASE("different sends receivers of even and odd id rows on either side of its own") {
  const Scene scene;
  const testing::Vector even = message_of("different", 0.5, scene.view(1, 3), 0);
  const testing::Vector odd = message_of("different", 0.5, scene.view(1, 3), 3);
  const testing::Vector own = scene.row(1);
  RandomStream random(kAttackSeed, 1, Purpose::attack, 3);
  const double root = testing::distance(own, testing::Vector(kRowLength)) /
                      std::sqrt(static_cast<double>(kRowLength));
  for (std::size_t k = 0; k < kRowLength; ++k) {
    const double step = 0.5 * root * random.next_normal();
    CHECK(even[k] == doctest::Approx(own[k] + step).epsilon(1e-9));
    CHECK(odd[k] == doctest::Approx(own[k] - step).epsilon(1e-9));
  }
}

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
              {0, j.peer, row, *w, plan.hostile, network.start}, i);
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
