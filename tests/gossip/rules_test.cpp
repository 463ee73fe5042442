// Mixing rules: each against the formula of its paper, computed on the rows themselves in double,
// and how far hostile rows move the mix.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/gossip/rule_test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

void check_equal(const Vector& a, const Vector& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-9));
}

/// x_0 + Σ_j W[0][j] clip(x_j − x_0, τ).
Vector clipped(const Vectors& rows, const Vector& weights, double radius) {
  Vector sum = rows[0];
  for (std::size_t j = 1; j < rows.size(); ++j) {
    const double scale = std::min(1.0, radius / distance(rows[0], rows[j]));
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += weights[j] * scale * (rows[j][i] - rows[0][i]);
  }
  return sum;
}

/// The indices of the rows, the nearest to `to` first.
std::vector<std::size_t> by_distance(const Vectors& rows, const Vector& to) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return distance(rows[k], to); });
  return order;
}

/// The smoothed Weiszfeld algorithm (Pillutla et al. 2022, Alg. 2) from the medoid, with the step
/// of Vardi and Zhang (2000) where rows are within `smoothing`.
Vector weiszfeld(const Vectors& rows, const Vector& alpha, double smoothing, int steps) {
  Vector sums;
  for (const Vector& row : rows) {
    double sum = 0;
    for (std::size_t k = 0; k < rows.size(); ++k) sum += alpha[k] * distance(row, rows[k]);
    sums.push_back(sum);
  }
  Vector v = rows[static_cast<std::size_t>(std::ranges::min_element(sums) - sums.begin())];
  for (int step = 0; step < steps; ++step) {
    Vector beta(rows.size());
    double here = 0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (distance(v, rows[k]) <= smoothing) here += alpha[k];
      else beta[k] = alpha[k] / distance(v, rows[k]);
    }
    const double sum = std::accumulate(beta.begin(), beta.end(), 0.0);
    for (double& weight : beta) weight /= sum;
    const Vector others = combined(rows, beta);
    const double stay = std::min(1.0, here / (sum * distance(others, v)));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = stay * v[i] + (1 - stay) * others[i];
  }
  return v;
}

std::size_t krum(const Vectors& rows, std::size_t b) {
  Vector scores;
  for (const Vector& row : rows) {
    const auto order = by_distance(rows, row);
    double score = 0;
    for (std::size_t k = 1; k <= rows.size() - b - 2; ++k)
      score += std::pow(distance(rows[order[k]], row), 2);
    scores.push_back(score);
  }
  return static_cast<std::size_t>(std::ranges::min_element(scores) - scores.begin());
}

/// Of each row, the mean of the m − b rows nearest to it.
Vectors nearest_means(const Vectors& rows, std::size_t b) {
  Vectors means;
  for (const Vector& row : rows) {
    Vector weights(rows.size(), 0.0);
    const auto order = by_distance(rows, row);
    const std::size_t kept = rows.size() - b;
    for (std::size_t k = 0; k < kept; ++k) weights[order[k]] = 1.0 / static_cast<double>(kept);
    means.push_back(combined(rows, weights));
  }
  return means;
}

Vector alike(std::size_t m) { return Vector(m, 1.0 / static_cast<double>(m)); }

}  // namespace

TEST_CASE("clipped: the formula, with a radius and with the adaptive one") {
  const Vectors rows = normal_vectors(7, 30, 1);
  const Vector weights{0.3, 0.1, 0.2, 0.05, 0.15, 0.1, 0.1};
  ParameterValues values = hostile(2);
  for (const double radius : {0.5, 6.0, 100.0}) {
    values["radius"] = radius;
    check_equal(mixed(rule_of("clipped", values), rows, weights), clipped(rows, weights, radius));
  }
  // All neighbours weigh 1/7: τ² = (1 / (2/7)) Σ (1/7) d², over all but the two farthest.
  const auto order = by_distance(rows, rows[0]);
  double sum = 0;
  for (std::size_t k = 1; k < 5; ++k) sum += std::pow(distance(rows[0], rows[order[k]]), 2) / 7;
  check_equal(mixed(rule_of("clipped", hostile(2)), rows, alike(7)),
              clipped(rows, alike(7), std::sqrt(sum / (2.0 / 7))));
  // Unlike weights: δ = 0.2, and the farthest rows up to that weight are left out.
  const double delta = 0.2;
  double left_out = 0, kept = 0;
  for (std::size_t k = 6; k >= 1; --k) {
    if (left_out >= delta - 1e-9)
      kept += weights[order[k]] * std::pow(distance(rows[0], rows[order[k]]), 2);
    left_out += weights[order[k]];
  }
  check_equal(mixed(rule_of("clipped", hostile(1)), rows, weights),
              clipped(rows, weights, std::sqrt(kept / delta)));
}

TEST_CASE("cs_plus: the radius is the (2b + 1)-th largest distance") {
  const Vectors rows = normal_vectors(8, 30, 2);
  for (const std::size_t b : {1, 2, 3}) {
    CAPTURE(b);
    const auto order = by_distance(rows, rows[0]);
    const double radius = distance(rows[0], rows[order[7 - 2 * b]]);
    check_equal(mixed(rule_of("cs_plus", hostile(static_cast<std::int64_t>(b))), rows, alike(8)),
                clipped(rows, alike(8), radius));
  }
  check_equal(mixed(rule_of("cs_plus", hostile(4)), rows, alike(8)), rows[0]);
}

TEST_CASE("trimmed_mean and median: coordinate by coordinate") {
  for (const std::size_t m : {5, 6, 9}) {
    CAPTURE(m);
    const Vectors rows = normal_vectors(m, 100, m);
    Vector trimmed, median;
    for (std::size_t i = 0; i < 100; ++i) {
      Vector neighbours, all;
      for (std::size_t k = 0; k < m; ++k) {
        all.push_back(rows[k][i]);
        if (k > 0) neighbours.push_back(rows[k][i]);
      }
      std::ranges::sort(neighbours);
      std::ranges::sort(all);
      trimmed.push_back(std::accumulate(neighbours.begin() + 1, neighbours.end() - 1, rows[0][i]) /
                        static_cast<double>(m - 2));
      median.push_back((all[(m - 1) / 2] + all[m / 2]) / 2);
    }
    check_equal(mixed(rule_of("trimmed_mean"), rows, alike(m)), trimmed);
    check_equal(mixed(rule_of("median"), rows, alike(m)), median);
  }
  const Vectors rows = normal_vectors(4, 10, 1);
  check_equal(mixed(rule_of("trimmed_mean", hostile(2)), rows, alike(4)), rows[0]);
  check_equal(mixed(rule_of("trimmed_mean", hostile(0)), rows, alike(4)), combined(rows, alike(4)));
}

TEST_CASE("geometric_median: the Weiszfeld algorithm on the rows, and the optimum") {
  const Vectors rows = normal_vectors(7, 30, 4);
  const Vector weights{0.3, 0.1, 0.2, 0.05, 0.15, 0.1, 0.1};
  for (const std::int64_t steps : {1, 3, 20}) {
    const ParameterValues values{{"iterations", steps}, {"smoothing", 0.01}};
    check_equal(mixed(rule_of("geometric_median", values), rows, weights),
                weiszfeld(rows, weights, 0.01, static_cast<int>(steps)));
  }
  const Vector v =
      mixed(rule_of("geometric_median", {{"iterations", std::int64_t{10000}}}), rows, weights);
  Vector gradient(30, 0.0);  // of Σ α ‖v − x‖
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (std::size_t i = 0; i < 30; ++i)
      gradient[i] += weights[k] * (v[i] - rows[k][i]) / distance(v, rows[k]);
  for (const double value : gradient) CHECK(std::abs(value) < 1e-6);
}

TEST_CASE("geometric_median: the optimum is reached from a row that nearly is the optimum") {
  // The gradient of Σ α ‖v − x‖ over the rows that are not v: 0 at the optimum, or at most the
  // weight of the row that v is.
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const std::size_t m = 3 + seed % 3;
    const Vectors rows = normal_vectors(m, 2, 100 + seed);
    const Vector v = mixed(rule_of("geometric_median"), rows, alike(m));
    Vector gradient(2, 0.0);
    double here = 0;
    for (const Vector& row : rows) {
      const double from = distance(v, row);
      if (from < 1e-6) here += 1.0 / static_cast<double>(m);
      for (std::size_t i = 0; i < 2 && from >= 1e-6; ++i)
        gradient[i] += (v[i] - row[i]) / from / static_cast<double>(m);
    }
    CHECK(std::hypot(gradient[0], gradient[1]) < here + 1e-3);
  }
}

TEST_CASE("krum and nearest_neighbour_mixing: the rows near each other") {
  for (const std::size_t b : {1, 2}) {
    CAPTURE(b);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Vectors rows = normal_vectors(7, 4, 10 + seed);
      ParameterValues values = hostile(static_cast<std::int64_t>(b));
      check_equal(mixed(rule_of("krum", values), rows, alike(7)), rows[krum(rows, b)]);
      const Vectors means = nearest_means(rows, b);
      check_equal(mixed(rule_of("nearest_neighbour_mixing", values), rows, alike(7)), means[0]);
      values["then"] = std::string("krum");
      check_equal(mixed(rule_of("nearest_neighbour_mixing", values), rows, alike(7)),
                  means[krum(means, b - 1)]);  // m − b nearest, itself included
      // Near its start, which is one of the means, an iterate's distance to it is rounded.
      values["then"] = std::string("geometric_median");
      const Vector of_means = weiszfeld(means, alike(7), 1e-6, 200);
      CHECK(distance(mixed(rule_of("nearest_neighbour_mixing", values), rows, alike(7)), of_means) <
            1e-3);
    }
  }
}

TEST_CASE("hostile rows move the mix no farther than the honest rows are apart: every rule") {
  for (const RuleKind& kind : rules::catalog()) {
    CAPTURE(kind.name);
    for (const std::size_t b : {1, 2, 4})
      for (const double sent : {1e6, -1e6, 1e12}) {
        CAPTURE(b);
        Vectors rows = normal_vectors(11, 20, b);
        double radius = 0;
        for (std::size_t k = 0; k < 11 - b; ++k)
          for (std::size_t l = 0; l < k; ++l) radius = std::max(radius, distance(rows[k], rows[l]));
        for (std::size_t k = 11 - b; k < 11; ++k)
          for (double& value : rows[k]) value = value > 0 || b > 1 ? sent : -sent;
        std::swap(rows[3], rows[10]);  // hostile peers are not the last ones only
        if (kind.name == "mean") {
          CHECK(distance(mixed(rule_of("mean"), rows, alike(11)), rows[0]) > 1e5);
          continue;
        }
        const Vector mix =
            mixed(rule_of(kind.name, hostile(static_cast<std::int64_t>(b))), rows, alike(11));
        CHECK(distance(mix, rows[0]) <= 2 * radius);
        const bool by_coordinate = kind.name == "median" || kind.name == "trimmed_mean";
        for (std::size_t i = 0; by_coordinate && i < mix.size(); ++i) {
          double least = rows[0][i], most = rows[0][i];
          for (const Vector& row : rows)
            if (std::abs(row[i]) < 1e5)
              least = std::min(least, row[i]), most = std::max(most, row[i]);
          CHECK(mix[i] >= least);
          CHECK(mix[i] <= most);
        }
      }
  }
}

TEST_CASE("geometric_median: nearly half of the weight, as far away as values may be") {
  for (const std::size_t b : {5, 15})
    for (const double sent : {1e6, 1e12, 1e18}) {
      CAPTURE(b);
      CAPTURE(sent);
      const std::size_t m = 2 * b + 1;
      Vectors rows = normal_vectors(m, 20, b);
      for (std::size_t k = b + 1; k < m; ++k) rows[k].assign(20, sent);
      double radius = 0;
      for (std::size_t k = 0; k <= b; ++k)
        for (std::size_t l = 0; l < k; ++l) radius = std::max(radius, distance(rows[k], rows[l]));
      for (const char* rule : {"geometric_median", "nearest_neighbour_mixing"}) {
        ParameterValues values = hostile(static_cast<std::int64_t>(b));
        if (rule[0] == 'n') values["then"] = std::string("geometric_median");
        CHECK(distance(mixed(rule_of(rule, values), rows, alike(m)), rows[0]) <= 2 * radius);
      }
    }
}

TEST_CASE("ubar: the N − b nearest rows, then those with a loss like the own row's, or the best") {
  const MixingRule rule = rule_of("ubar", {{"hostile", std::int64_t{2}}, {"own_weight", 0.4}});
  REQUIRE(rule.reads_losses());
  const auto& ubar = std::get<DistanceRule>(rule.function);
  Neighbourhood hood{alike(6), SquaredDistances(6)};
  for (std::size_t j = 1; j < 6; ++j)  // rows 1 and 4 are the farthest
    hood.distances.set(0, j, j == 1 ? 50.0 : j == 4 ? 40.0 : static_cast<double>(j));
  const std::vector<double> weights = ubar.weights(hood);
  CHECK(Vector(weights.begin() + 1, weights.end()) == Vector{0, 0.6 / 3, 0.6 / 3, 0, 0.6 / 3});
  const auto kept = [&](const std::vector<double>& losses) {
    const std::vector<double> after = ubar.by_losses(weights, losses);
    return Vector(after.begin() + 1, after.end());
  };
  CHECK(kept({1, 0, 0.9, 1.1, 0, 1}) == Vector{0, 0.6 / 2, 0, 0, 0.6 / 2});  // 1 and 4 stay out
  CHECK(kept({1, 0, 3, 2, 0, 4}) == Vector{0, 0, 0.6, 0, 0});
  CHECK(kept({1, 0, NAN, NAN, 0, NAN}) == Vector(5, 0.0));
  CHECK(ubar.weights({alike(3), SquaredDistances(3)}) == Vector(3, 0.0));  // two rows, b = 2
}

TEST_CASE("rows that are not finite give weights that are finite: every rule of distances") {
  for (const RuleKind& kind : rules::catalog()) {
    CAPTURE(kind.name);
    const MixingRule rule = kind.make({}).value();
    const auto* by_distances = std::get_if<DistanceRule>(&rule.function);
    if (by_distances == nullptr) continue;
    Neighbourhood hood{alike(4), SquaredDistances(4)};
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < i; ++j) hood.distances.set(i, j, i == 3 ? NAN : 1.0);
    CHECK(hood.distances(3, 0) == SquaredDistances::kFarthest);
    for (const double weight : by_distances->weights(hood)) CHECK(std::isfinite(weight));
  }
}

TEST_CASE("the condition on the number of neighbours gives the largest b") {
  const auto most = [](const std::string& name, int neighbours) {
    return find_rule(name)->most_hostile(neighbours);
  };
  CHECK(most("mean", 100) == 0);
  CHECK(most("trimmed_mean", 4) == 1);
  CHECK(most("trimmed_mean", 5) == 2);
  CHECK(most("median", 4) == 2);
  CHECK(most("krum", 4) == 1);
  CHECK(most("krum", 3) == 0);
  CHECK(find_rule("mode").error().message.starts_with("mixing.rule: unknown rule 'mode'"));
}
