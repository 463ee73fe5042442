// Fixed points, rates and noise on quadratic functions: against formulas where there are some, and
// one way against another.
#include "tests/theory/test_util.hpp"

using namespace gossamer;
using namespace gossamer::theory;
using namespace gossamer::theory::test;

namespace {

constexpr double kRate = 0.2;

/// Equal to ten digits or so.
bool close(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::max({std::abs(a), std::abs(b), 1e-3});
}

Quadratics told_n_times(Quadratics functions) {
  functions.hessians.resize(static_cast<std::size_t>(functions.gradients.rows()),
                            functions.hessians.front());
  return functions;
}

}  // namespace

TEST_CASE("gradient descent: the rate is that of the flattest direction, the limit the optimum") {
  const auto schedule = network("ring", 6).schedule();
  for (const double rate : {0.2, 1.9, 2.1}) {
    const auto outcome = predict(
        run_on(*schedule, recipe(Method::gradient_descent, rate), quadratics(6, 4, true), {0, 50}));
    REQUIRE(outcome.rate);
    CHECK(close(*outcome.rate, std::max(1 - 0.1 * rate, std::abs(1 - rate))));
    CHECK(outcome.limit.has_value() == (rate < 2));
    if (rate < 2) CHECK(outcome.limit->optimum == 0);
    CHECK((outcome.curve.back().optimum < outcome.curve.front().optimum) == (rate < 2));
  }
}

TEST_CASE(
    "two peers with opposite gradients: D-PSGD ends at the solution of its one linear equation") {
  // f = ½ (x ∓ 1)², W = ½ ½: adapt-then-combine averages exactly, adapt-while-communicate leaves ±d
  // with d = γ (1 − d).
  Quadratics functions{{Eigen::MatrixXd::Ones(1, 1)}, RowMatrix(2, 1), Eigen::RowVectorXd::Ones(1)};
  functions.gradients << -1, 1;
  const auto schedule = network("complete", 2).schedule();
  const auto atc = predict(run_on(*schedule, recipe(Method::dpsgd_atc, kRate), functions));
  REQUIRE(atc.limit);
  CHECK(atc.limit->optimum == 0);
  const auto awc = predict(run_on(*schedule, recipe(Method::dpsgd_awc, kRate), functions));
  REQUIRE(awc.limit);
  CHECK(close(awc.limit->optimum, kRate / (1 + kRate)));
  CHECK(close(awc.limit->consensus, kRate / (1 + kRate)));
}

TEST_CASE("exact methods end at the optimum, D-PSGD beside it; and every curve ends at its limit") {
  const auto ring = network("ring", 8).lazy().schedule();
  for (const Recipe& recipe : recipes(kRate)) {
    CAPTURE(static_cast<int>(recipe.method));
    const auto outcome = predict(run_on(*ring, recipe, quadratics(8, 3, true), {4000}));
    REQUIRE(outcome.rate);
    REQUIRE(*outcome.rate < 1);
    CHECK(std::abs(outcome.curve.back().optimum - outcome.limit->optimum) < 1e-9);
    CHECK(std::abs(outcome.curve.back().consensus - outcome.limit->consensus) < 1e-9);
    const bool exact = recipe.method != Method::dpsgd_atc && recipe.method != Method::dpsgd_awc &&
                       recipe.method != Method::push_sum && recipe.method != Method::qg_momentum &&
                       recipe.method != Method::dmsgd && recipe.method != Method::decentlam &&
                       recipe.weight_decay == 0;
    CHECK((outcome.bias->optimum == 0) == exact);
  }
}

TEST_CASE(
    "DecentLaM ends where D-PSGD without momentum does; DmSGD and a momentum of the peers' own end "
    "farther from the optimum") {
  const auto ring = network("ring", 8).lazy().schedule();
  const auto limit = [&](Method method, double own, double local) {
    Recipe each = recipe(method, 0.05);
    each.own_momentum = own;
    each.momentum = local;
    const auto outcome = predict(run_on(*ring, each, quadratics(8, 3, true)));
    REQUIRE(outcome.limit);
    return outcome.limit->optimum;
  };
  const double plain = limit(Method::dpsgd_atc, 0, 0);
  CHECK(close(limit(Method::decentlam, 0.8, 0), plain));
  CHECK(limit(Method::dpsgd_atc, 0, 0.8) > 3 * plain);
  CHECK(limit(Method::dmsgd, 0.8, 0) > 1.5 * plain);
}

TEST_CASE("without other peers, the momenta of DmSGD and DecentLaM are that of SGD") {
  const auto alone = network("ring", 1).schedule();
  Recipe local = recipe(Method::dpsgd_atc, 0.3);
  local.momentum = 0.6;
  const Quadratics f = quadratics(1, 3, true);
  const auto expected = predict(run_on(*alone, local, f, {1, 2, 9})).curve;
  for (const Method method : {Method::dmsgd, Method::decentlam}) {
    Recipe own = recipe(method, 0.3);
    own.own_momentum = 0.6;
    const auto curve = predict(run_on(*alone, own, f, {1, 2, 9})).curve;
    for (std::size_t i = 0; i < curve.size(); ++i)
      CHECK(close(curve[i].optimum, expected[i].optimum));
  }
}

TEST_CASE("by modes, by coordinates and whole: the same rate, limit, curve and noise") {
  for (const auto& request : {network("ring", 6), network("exponential", 8), network("star", 6),
                              network("one_peer_exponential", 8)}) {
    const auto schedule = request.schedule();
    const bool fixed = schedule->period() == 1;
    for (const Recipe& recipe : recipes(kRate)) {
      CAPTURE(request.request.kind);
      CAPTURE(static_cast<int>(recipe.method));
      const Quadratics functions = quadratics(schedule->peers(), 3, true);
      QuadraticRun run = run_on(*schedule, recipe, functions, {0, 1, 7, 24});
      run.gradient_noise = fixed ? 0.1 : 0;
      const auto quick = predict(run);
      REQUIRE(quick.rate);
      CHECK(quick.not_known.empty());
      run.functions = told_n_times(functions);
      const auto whole = predict(run);
      std::vector<QuadraticOutcome> others{whole};
      run.gradient_noise = 0;
      const auto still = predict(run);
      if (request.request.kind == "star" ||
          request.request.kind == "ring") {  // as edges, twice over: by coordinates
        const auto twice = untold(*schedule, 2);
        QuadraticRun other = run_on(*twice, recipe, functions, run.rounds);
        const auto found = predict(other);
        CHECK(close(*found.rate, *quick.rate, 1e-7));
        CHECK(found.limit.has_value() == still.limit.has_value());
        if (found.limit) CHECK(close(found.limit->optimum, still.limit->optimum));
      }
      CHECK(close(*whole.rate, *quick.rate, 1e-7));
      CHECK(whole.limit.has_value() == quick.limit.has_value());
      if (whole.limit) CHECK(close(whole.limit->optimum, quick.limit->optimum, 1e-6));
      if (whole.limit) CHECK(close(whole.limit->consensus, quick.limit->consensus, 1e-6));
      for (std::size_t i = 0; i < run.rounds.size(); ++i) {
        CHECK(close(whole.curve[i].optimum, quick.curve[i].optimum));
        CHECK(close(whole.curve[i].consensus, quick.curve[i].consensus));
      }
    }
  }
}

TEST_CASE(
    "push-sum on unbalanced graphs: the iteration of its paper, its fixed point and its rate") {
  for (const char* kind : {"star", "dumbbell"}) {
    const auto schedule = network(kind, 6).weighed({.weights = "out_degree"}).schedule();
    REQUIRE_FALSE(schedule->at(0)->doubly_stochastic());
    Recipe push = recipe(Method::push_sum, kRate);
    push.weight_decay = 0.05;
    push.local_steps = 2;
    const Quadratics f = quadratics(6, 3, false);
    QuadraticRun run = run_on(*schedule, push, f, {0, 1, 5, 60, 61, 4000});
    const auto outcome = predict(run);
    // Assran et al. 2019, Alg. 1, on parameters and not on errors.
    const Eigen::MatrixXd w = topology::dense(*schedule->at(0));
    Eigen::MatrixXd x = run.start;
    Eigen::VectorXd weight = Eigen::VectorXd::Ones(6);
    std::size_t next = 0;
    double errors[2] = {};  // to the limit, in rounds 60 and 61
    for (Round t = 0; next < run.rounds.size(); ++t) {
      const Eigen::MatrixXd z = weight.cwiseInverse().asDiagonal() * x;
      if (t == run.rounds[next]) {
        const double distance =
            std::sqrt((z.rowwise() - f.optimum).squaredNorm() / 6) / f.optimum.norm();
        CHECK(close(outcome.curve[next].optimum, distance));
        CHECK(close(outcome.curve[next].consensus,
                    std::sqrt((z.rowwise() - z.colwise().mean()).squaredNorm() / 6)));
        if (t == 60 || t == 61) errors[t - 60] = std::abs(distance - outcome.limit->optimum);
        ++next;
      }
      for (int h = 0; h < 2; ++h)
        for (Eigen::Index i = 0; i < 6; ++i) {
          const Eigen::RowVectorXd e = x.row(i) / weight(i) - f.optimum;
          const Eigen::RowVectorXd g =
              e * f.hessians[static_cast<std::size_t>(i)] + f.gradients.row(i);
          x.row(i) -= kRate * (g + 0.05 * x.row(i));
        }
      x = w * x, weight = w * weight;
    }
    REQUIRE(outcome.limit);
    CHECK(close(outcome.curve.back().optimum, outcome.limit->optimum));
    CHECK(close(outcome.curve.back().consensus, outcome.limit->consensus));
    CHECK(errors[1] / errors[0] == doctest::Approx(*outcome.rate).epsilon(0.01));
  }
  // Equal Hessians, each coordinate on its own: the same.
  const auto star = network("star", 6).weighed({.weights = "out_degree"}).schedule();
  QuadraticRun run = run_on(*star, recipe(Method::push_sum, kRate), quadratics(6, 3, true), {30});
  const auto apart = predict(run);
  run.functions = told_n_times(run.functions);
  const auto whole = predict(run);
  CHECK(close(*apart.rate, *whole.rate, 1e-7));
  CHECK(close(apart.limit->optimum, whole.limit->optimum));
  CHECK(close(apart.curve[0].optimum, whole.curve[0].optimum));
  run.gradient_noise = 0.1;  // weights that move: not foretold, and said so
  const auto noisy = predict(run);
  CHECK(noisy.curve.empty());
  CHECK(noisy.not_known.size() == 1);
}

TEST_CASE("the rate is the slope at which a curve's error goes") {
  const auto schedule = network("ring", 8).lazy().schedule();
  for (const bool shared : {true, false})
    for (const Method method :
         {Method::tracking_atc, Method::tracking_awc, Method::d2, Method::extra}) {
      CAPTURE(static_cast<int>(method));
      QuadraticRun run = run_on(*schedule, recipe(method, kRate), quadratics(8, 3, shared));
      const double rate = predict(run).rate.value();
      const auto late = static_cast<Round>(
          std::log(1e-9) / std::log(rate));  // what is slowest is left, and is not yet rounding
      for (Round t = late / 2; t <= late; ++t) run.rounds.push_back(t);
      // Modes with complex eigenvalues swing about their envelope: the slope is that of a line
      // through all points.
      const auto curve = predict(run).curve;
      const auto count = static_cast<double>(curve.size());
      double covariance = 0, variance = 0;
      for (std::size_t i = 0; i < curve.size(); ++i) {
        const double from_middle = static_cast<double>(i) - (count - 1) / 2;
        covariance += from_middle * std::log(curve[i].optimum);
        variance += from_middle * from_middle;
      }
      const double slope = std::exp(covariance / variance);
      CHECK(slope < rate * 1.002);
      CHECK(slope > rate * 0.99);  // a slow mode that begins small shows late
    }
}

TEST_CASE("too large a step is called unstable, and has no limit") {
  const auto schedule = network("ring", 8).schedule();
  for (const Method method : {Method::dpsgd_atc, Method::tracking_awc, Method::extra}) {
    const auto outcome =
        predict(run_on(*schedule, recipe(method, 3), quadratics(8, 3, true), {100}));
    REQUIRE(outcome.rate);
    CHECK(*outcome.rate > 1);
    CHECK_FALSE(outcome.limit);
    CHECK(outcome.curve.back().optimum > 1e3);
  }
}

TEST_CASE(
    "noise on one peer's gradient descent settles at γ²σ²/(1 − (1 − γλ)²), by the way it should") {
  Quadratics functions{
      {0.5 * Eigen::MatrixXd::Ones(1, 1)}, RowMatrix::Zero(1, 1), Eigen::RowVectorXd::Ones(1)};
  const auto schedule = network("ring", 1).schedule();
  QuadraticRun run = run_on(*schedule, recipe(Method::dpsgd_atc, kRate), functions, {0, 10, 1000});
  run.start(0, 0) = 1;  // at the optimum
  run.gradient_noise = 0.3;
  const auto outcome = predict(run);
  const double factor = 1 - kRate * 0.5, settled = kRate * 0.3 / std::sqrt(1 - factor * factor);
  REQUIRE(outcome.limit);
  CHECK(outcome.bias->optimum == 0);
  CHECK(close(outcome.limit->optimum, settled, 1e-6));
  CHECK(outcome.curve[0].optimum == 0);
  CHECK(close(outcome.curve[1].optimum, settled * std::sqrt(1 - std::pow(factor, 20)), 1e-6));
}

TEST_CASE(
    "what is not known is left out and said: a random W, a step size that goes on falling, too "
    "large a problem") {
  const auto random = network("random_matching", 8).schedule();
  const auto drawn =
      predict(run_on(*random, recipe(Method::dpsgd_atc, kRate), quadratics(8, 3, true), {20}));
  CHECK_FALSE(drawn.rate);
  CHECK(drawn.curve.size() == 1);
  REQUIRE(drawn.not_known.size() == 1);
  CHECK(drawn.not_known.front().find("no period") != std::string::npos);

  const auto ring = network("ring", 8).schedule();
  Recipe falling = recipe(Method::dpsgd_atc, kRate);
  falling.settled_rate.reset();
  falling.rate = [](std::uint64_t step) { return 0.2 / static_cast<double>(step + 1); };
  const auto fell = predict(run_on(*ring, falling, quadratics(8, 3, true), {20}));
  CHECK_FALSE(fell.rate);
  CHECK(fell.curve.size() == 1);

  const auto grid = network("random_regular", 64).schedule();
  const auto large =
      predict(run_on(*grid, recipe(Method::d2, kRate), quadratics(64, 20, false), {3}));
  CHECK_FALSE(large.rate);
  CHECK(large.curve.size() == 1);
  REQUIRE(large.not_known.size() == 1);
  CHECK(large.not_known.front().find("multiplications") != std::string::npos);
}
