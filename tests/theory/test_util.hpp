// Helpers of the theory's tests: quadratics drawn at random, a run on them, and the same W in other
// representations, so that another code path gives the answer.
#pragma once

#include <Eigen/Core>

#include "base/linear_algebra/dense.hpp"
#include "base/philox.hpp"
#include "tests/topology/test_util.hpp"
#include "theory/quadratic.hpp"
#include "topology/building.hpp"

namespace gossamer::theory::test {

using topology::test::network;

inline Eigen::MatrixXd normal(RandomStream& random, Eigen::Index rows, Eigen::Index cols) {
  Eigen::MatrixXd matrix(rows, cols);
  for (Eigen::Index i = 0; i < rows; ++i)
    for (Eigen::Index j = 0; j < cols; ++j) matrix(i, j) = random.next_normal();
  return matrix;
}

/// f_i of n peers, eigenvalues from 0.1 to 1; `shared`: one Hessian for all peers, given once.
inline Quadratics quadratics(int n, int d, bool shared, std::uint64_t seed = 1) {
  RandomStream random(seed, kNoPeer, Purpose::data);
  Quadratics f;
  for (int i = 0; i < (shared ? 1 : n); ++i) {
    const Eigen::MatrixXd q = qr(normal(random, d, d)).q;
    f.hessians.emplace_back(q * Eigen::VectorXd::LinSpaced(d, d > 1 ? 0.1 : 1, 1).asDiagonal() *
                            q.transpose());
  }
  f.gradients = normal(random, n, d);
  f.gradients.rowwise() -= f.gradients.colwise().mean();
  f.optimum = normal(random, 1, d).normalized();
  return f;
}

inline Recipe recipe(Method method, double rate) {
  Recipe recipe;
  recipe.method = method;
  recipe.rate = [rate](std::uint64_t) { return rate; };
  recipe.settled_rate = rate;
  return recipe;
}

/// Every method, with momentum of either kind, weight decay and several local steps among them.
inline std::vector<Recipe> recipes(double rate) {
  std::vector<Recipe> all;
  for (const Method method :
       {Method::dpsgd_atc, Method::dpsgd_awc, Method::tracking_atc, Method::tracking_awc,
        Method::d2, Method::extra, Method::qg_momentum, Method::dmsgd, Method::decentlam,
        Method::push_sum, Method::push_pull, Method::gradient_descent})
    all.push_back(recipe(method, rate));
  for (const std::size_t like : {6, 7, 8}) all[like].own_momentum = 0.5;
  all.push_back(all[6]);
  all.back().own_nesterov = true;
  all.push_back(recipe(Method::dpsgd_awc, rate));
  all.back().local_steps = 3;
  for (const std::size_t like : {0, 2, 5}) {
    all.push_back(all[like]);
    all.back().momentum = 0.5;
    all.back().nesterov = like == 2;
    all.back().weight_decay = 0.05;
  }
  return all;
}

/// W of every round of the period as plain edges, for several periods: the schedule is no longer
/// known to be a lattice or static.
inline std::unique_ptr<MixingSchedule> untold(const MixingSchedule& schedule, int times) {
  std::vector<std::vector<topology::WeightedEdge>> rounds;
  for (int t = 0; t < times * schedule.period(); ++t) {
    auto& edges = rounds.emplace_back();
    const auto w = schedule.at(static_cast<Round>(t));
    for (int i = 0; i < w->peers(); ++i)
      for (const auto& [j, weight] : w->in_neighbours(i))
        if (i < j) edges.push_back({i, j, weight});
  }
  auto made =
      topology::make_schedule(topology::weighted_topology(schedule.peers(), rounds), {}, "untold");
  REQUIRE(made.ok());
  return std::move(made).value();
}

inline QuadraticRun run_on(const MixingSchedule& schedule, Recipe recipe, Quadratics functions,
                           std::vector<Round> rounds = {}) {
  RandomStream random(7, kNoPeer, Purpose::data);
  RowMatrix start = normal(random, 1, functions.optimum.size()).replicate(schedule.peers(), 1);
  return {schedule, std::move(recipe), std::move(functions), std::move(start),
          0,        std::move(rounds)};
}

}  // namespace gossamer::theory::test
