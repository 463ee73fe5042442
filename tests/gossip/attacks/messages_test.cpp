// Attacks: each message against its formula in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "gossip/attack.hpp"
#include "tests/gossip/rule_test_util.hpp"

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

MakeAttack attack_of(const std::string& name, const ParameterValues& values = {}) {
  const auto kind = find_attack(name);
  REQUIRE(kind.ok());
  auto make = kind->make(values, {6, {1, 4}, kAttackSeed});
  REQUIRE_MESSAGE(make.ok(), (make.ok() ? "" : make.error().message));
  return std::move(make).value();
}

testing::Vector message_of(const std::string& name, double strength, const AttackView& view,
                           int receiver) {
  const auto attack = attack_of(name)();
  attack->observe(view);
  return attack->message(view, receiver, strength);
}

void check_near(const testing::Vector& a, const testing::Vector& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == doctest::Approx(b[k]).epsilon(1e-12));
}

double strength_of(const std::string& name, int peers, int hostile) {
  return find_attack(name)->default_strength(peers, hostile).value();
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

TEST_CASE("spectral_heterogeneity pushes the parts apart that are connected least") {
  // Of peers 0 to 3 and 5, which are honest in a graph of two triangles with one bridge, 0 – 3.
  const topology::MixingMatrix w{{{{1, 0.2}, {2, 0.2}, {3, 0.1}, {4, 0.3}},
                                  {{0, 0.2}, {2, 0.2}},
                                  {{0, 0.2}, {1, 0.2}},
                                  {{0, 0.1}, {4, 0.3}, {5, 0.2}},
                                  {{0, 0.3}, {3, 0.3}},
                                  {{3, 0.2}}}};
  const Scene scene;
  const std::vector<int> hostile{4};
  const AttackView view{0, 4, scene.rows[4], w, hostile, scene.rows};
  const auto attack = attack_of("spectral_heterogeneity")();
  attack->observe(view);
  // The direction of the message to i is v_i Σ_k v_k x_k: its coordinates over i are those of v.
  testing::Vectors pushes;
  for (const int i : {0, 1, 2, 3, 5}) {
    testing::Vector push = attack->message(view, i, 2);
    for (std::size_t c = 0; c < kRowLength; ++c) push[c] = (push[c] - scene.row(i)[c]) / 2;
    pushes.push_back(push);
  }
  testing::Vector v;  // up to its sign: v_i² = Σ_c push_i[c] v_i Σ_k … / ‖Σ_k v_k x_k‖²
  double norm = 0;
  for (const testing::Vector& push : pushes)
    norm += testing::distance(push, testing::Vector(kRowLength)) *
            testing::distance(push, testing::Vector(kRowLength));
  for (const testing::Vector& push : pushes) {
    double along = 0;
    for (std::size_t c = 0; c < kRowLength; ++c) along += push[c] * pushes[0][c];
    const double first = testing::distance(pushes[0], testing::Vector(kRowLength));
    v.push_back(along / (first * std::sqrt(norm)));
  }
  // L v = λ v, of norm 1, and no part of v is along the constant vector.
  const double weights[5][5] = {{0, 0.2, 0.2, 0.1, 0},
                                {0.2, 0, 0.2, 0, 0},
                                {0.2, 0.2, 0, 0, 0},
                                {0.1, 0, 0, 0, 0.2},
                                {0, 0, 0, 0.2, 0}};
  testing::Vector applied(5);
  double rayleigh = 0, sum = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 5; ++j) applied[i] += weights[i][j] * (v[i] - v[j]);
    rayleigh += v[i] * applied[i];
    sum += v[i];
  }
  CHECK(sum == doctest::Approx(0).epsilon(1e-9));
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(applied[i] == doctest::Approx(rayleigh * v[i]).epsilon(1e-9));
  CHECK(v[0] * v[1] > 0);  // a triangle is one part, and the two peers behind the bridge the other
  CHECK(v[0] * v[2] > 0);
  CHECK(v[0] * v[4] < 0);
  CHECK(v[3] * v[4] > 0);
  testing::Vector expected = scene.row(1);
  for (std::size_t k = 0; k < 5; ++k)
    for (std::size_t c = 0; c < kRowLength; ++c)
      expected[c] += 2 * v[1] * v[k] * scene.row(k == 4 ? 5 : static_cast<int>(k))[c];
  check_near(attack->message(view, 1, 2), expected);
}

TEST_CASE("spectral_heterogeneity: honest peers without an edge, and a single one") {
  const Scene scene;
  const topology::MixingMatrix ring{
      {{{1, 0.3}, {3, 0.3}}, {{0, 0.3}, {2, 0.3}}, {{1, 0.3}, {3, 0.3}}, {{0, 0.3}, {2, 0.3}}}};
  const auto message = [&](const std::vector<int>& hostile, int receiver) {
    const std::span<const std::vector<float>> rows(scene.rows.data(), 4);
    const AttackView view{0, hostile.front(), rows[1], ring, hostile, rows};
    const auto attack = attack_of("spectral_heterogeneity")();
    attack->observe(view);
    return attack->message(view, receiver, 3);
  };
  // Peers 0 and 2 are two parts: v = (1, −1) / √2.
  testing::Vector apart = scene.row(0);
  for (std::size_t k = 0; k < kRowLength; ++k)
    apart[k] += 1.5 * (scene.row(0)[k] - scene.row(2)[k]);
  check_near(message({1, 3}, 0), apart);
  check_near(message({1, 2, 3}, 0), scene.row(0));
}

TEST_CASE("mimic finds the direction in which honest rows differ, and stays with one peer") {
  // Peers 0, 2, 3 and 5 are honest. They lie on a line along coordinate 3, beside small noise, and
  // 2 and 5 are its ends.
  const auto attack = attack_of("mimic", {{"warmup", std::int64_t{20}}})();
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
    const testing::Vector message = attack->message(scene.view(4, t), 0, 1);
    for (const int peer : {0, 2, 3, 5})
      if (message == scene.row(peer)) targets.insert(peer);
  }
  REQUIRE(targets.size() == 1);  // z keeps its sign
  const int target = *targets.begin();
  CHECK((target == 2 || target == 5));
  const Scene later = scene_of(30, 3);  // another peer is farther now, but the warm-up is over
  attack->observe(later.view(4, 30));
  CHECK(attack->message(later.view(4, 30), 0, 1) == later.row(target));
}

TEST_CASE("stale sends the row of k rounds ago, and at first the oldest") {
  const auto attack = attack_of("stale", {{"lag", std::int64_t{3}}})();
  for (Round t = 0; t < 8; ++t) {
    const Scene scene(t);
    attack->observe(scene.view(4, t));
    CHECK(attack->message(scene.view(4, t), 2, 1) == Scene(t < 3 ? 0 : t - 3).row(4));
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
