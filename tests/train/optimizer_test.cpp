// The optimizers against recurrences written out by hand, through the device's update; and the step
// size over the steps.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "gpu/cpu_device.hpp"
#include "tests/train/optimizer_test_util.hpp"
#include "train/optimizer.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// x after each of the steps on f(x) = ½ x² from x = 1 (gradient x).
std::vector<double> trajectory(double rate, const gpu::UpdateRule& rule, int steps) {
  gpu::BasicCpuDevice<double> device(1);
  double x = 1, first = 0, second = 0;
  std::vector<double> xs;
  for (int s = 0; s < steps; ++s) {
    const double gradient = x;
    const gpu::UpdateJob<double> job{.parameters = &x,
                                     .state = {rule.state_rows() > 0 ? &first : nullptr,
                                               rule.state_rows() > 1 ? &second : nullptr},
                                     .gradient = &gradient,
                                     .length = 1,
                                     .rate = rate,
                                     .step = static_cast<std::uint64_t>(s)};
    device.update(rule, std::span(&job, 1));
    xs.push_back(x);
  }
  return xs;
}

void check_close(const std::vector<double>& a, const std::vector<double>& b, double error = 1e-14) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(error));
}

OptimizerOptions scheduled(double rate, ScheduleOptions schedule) {
  return {.rate = rate, .schedule = std::move(schedule)};
}

std::string optimizer_refusal(const std::string& kind, const ParameterValues& own,
                              const ParameterValues& schedule = {}) {
  const auto made = make_optimizer(kind, own, schedule);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().kind == ErrorKind::invalid);
  return made.error().message;
}

}  // namespace

TEST_CASE("plain SGD, with and without weight decay") {
  check_close(trajectory(0.5, {}, 3), {0.5, 0.25, 0.125});
  check_close(trajectory(0.5, {.weight_decay = 0.5}, 3), {0.25, 0.0625, 0.015625});
}

TEST_CASE("momentum: v ← m v + g, x ← x − γ v") {
  // g = 1, v = 1, x = 0.9; g = 0.9, v = 0.5 + 0.9 = 1.4, x = 0.76; g = 0.76, v = 0.7 + 0.76 = 1.46,
  // x = 0.614.
  check_close(trajectory(0.1, {.momentum = 0.5}, 3), {0.9, 0.76, 0.614});
}

TEST_CASE("Nesterov: x ← x − γ (g + m v)") {
  // v = 1, x = 1 − 0.1 · 1.5 = 0.85; v = 0.5 + 0.85 = 1.35, x = 0.85 − 0.1 · (0.85 + 0.675) =
  // 0.6975.
  check_close(trajectory(0.1, {.momentum = 0.5, .nesterov = true}, 2), {0.85, 0.6975});
}

TEST_CASE("Nesterov with weight decay") {
  // g = 1 + 0.1 = 1.1, v = 1.1, x = 1 − 0.1 · (1.1 + 0.55) = 0.835.
  check_close(trajectory(0.1, {.momentum = 0.5, .nesterov = true, .weight_decay = 0.1}, 1),
              {0.835});
}

TEST_CASE(
    "Adam and AdamW by hand: the first step is the rate, the decay in the gradient or beside it") {
  using Kind = gpu::UpdateRule::Kind;
  // m̂ = g and v̂ = g² at the first step, so x = 1 − 0.1 · g / (|g| + ε).
  check_close(trajectory(0.1, {.kind = Kind::adam, .epsilon = 0.25}, 1), {1 - 0.1 / 1.25});
  check_close(trajectory(0.1, {.weight_decay = 1, .kind = Kind::adam, .epsilon = 0.5}, 1),
              {1 - 0.1 * 2 / 2.5});
  check_close(trajectory(0.1, {.weight_decay = 0.5, .kind = Kind::adamw, .epsilon = 0.25}, 1),
              {1 - 0.1 / 1.25 - 0.05});
  // β1 = ½, β2 = ¾, ε → 0: g = 1, x = 0.9; g = 0.9: m̂ = (0.25 + 0.45) / 0.75,
  // v̂ = (0.1875 + 0.25 · 0.81) / 0.4375.
  const double second = 0.9 - 0.1 * (0.7 / 0.75) / std::sqrt(0.39 / 0.4375);
  check_close(
      trajectory(0.1, {.kind = Kind::adam, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-300}, 2),
      {0.9, second});
}

TEST_CASE_TEMPLATE(
    "every rule follows its recurrence for 300 steps, rows of odd length, a rate that changes",
    Real, float, double) {
  gpu::BasicCpuDevice<Real> device(2);
  constexpr std::size_t kLength = 103;
  for (const gpu::UpdateRule& rule : {gpu::UpdateRule{.weight_decay = 1e-2},
                                      {.momentum = 0.9, .nesterov = true, .weight_decay = 1e-2},
                                      kAdam,
                                      kAdamW}) {
    std::vector<Coordinate> expected(kLength);
    std::vector<Real> x(kLength), first(kLength), second(kLength), gradient(kLength);
    for (std::size_t i = 0; i < kLength; ++i)
      expected[i].x = x[i] = static_cast<Real>(std::cos(3.0 * static_cast<double>(i)));
    for (int step = 0; step < 300; ++step) {
      const double rate = 0.02 / (1 + 0.01 * step);
      for (std::size_t i = 0; i < kLength; ++i) {
        expected[i].take(rule, rate, step, pull(i, expected[i].x));
        gradient[i] = static_cast<Real>(pull(i, static_cast<double>(x[i])));
      }
      const gpu::UpdateJob<Real> job{.parameters = x.data(),
                                     .state = {first.data(), second.data()},
                                     .gradient = gradient.data(),
                                     .length = kLength,
                                     .rate = rate,
                                     .step = static_cast<std::uint64_t>(step)};
      device.update(rule, std::span(&job, 1));
    }
    for (std::size_t i = 0; i < kLength; ++i)
      CHECK(static_cast<double>(x[i]) ==
            doctest::Approx(expected[i].x).epsilon(sizeof(Real) == 4 ? 2e-5 : 1e-12));
  }
}

TEST_CASE("Adam's corrections at any step: 1 / (1 − β^t), 1 in the end") {
  const gpu::UpdateRule rule{.kind = gpu::UpdateRule::Kind::adam};
  for (const std::uint64_t step : {0, 1, 2, 3, 6, 99, 1000, 12345}) {
    const auto t = static_cast<double>(step + 1);
    const gpu::StepFactors factors = gpu::step_factors(rule, 0.5, step);
    CHECK(factors.rate == 0.5);
    CHECK(factors.correction1 == doctest::Approx(1 / (1 - std::pow(0.9, t))).epsilon(1e-12));
    CHECK(factors.correction2 == doctest::Approx(1 / (1 - std::pow(0.999, t))).epsilon(1e-12));
  }
  const gpu::StepFactors late = gpu::step_factors(rule, 0.5, ~std::uint64_t{0});
  CHECK(late.correction1 == 1);
  CHECK(late.correction2 == 1);
}

TEST_CASE("warm-up grows linearly to the rate, whatever follows") {
  for (const char* schedule : {"constant", "step", "cosine"}) {
    const auto warm = scheduled(0.8, {.schedule = schedule, .warmup_steps = 3, .milestones = {50}});
    CHECK(rate_at(warm, 0, 100) == doctest::Approx(0.2));
    CHECK(rate_at(warm, 1, 100) == doctest::Approx(0.4));
    CHECK(rate_at(warm, 2, 100) == doctest::Approx(0.6));
    CHECK(rate_at(warm, 3, 100) == 0.8);
    CHECK(rate_at(warm, 0, 2) == doctest::Approx(0.2));  // a run that ends before its warm-up
    CHECK(rate_at(warm, 1, 2) == doctest::Approx(0.4));
  }
  CHECK(rate_at(scheduled(0.8, {.warmup_steps = 3}), 1'000'000'000'000, 10) == 0.8);
  CHECK(rate_at(scheduled(0.8, {}), 0, 10) == 0.8);
}

TEST_CASE("step: the factor once for each milestone reached, in any order") {
  const auto steps =
      scheduled(0.5, {.schedule = "step", .milestones = {20, 10, 30}, .factor = 0.1});
  CHECK(rate_at(steps, 0, 40) == 0.5);
  CHECK(rate_at(steps, 9, 40) == 0.5);
  CHECK(rate_at(steps, 10, 40) == doctest::Approx(0.05));
  CHECK(rate_at(steps, 19, 40) == doctest::Approx(0.05));
  CHECK(rate_at(steps, 20, 40) == doctest::Approx(0.005));
  CHECK(rate_at(steps, 30, 40) == doctest::Approx(0.0005));
  CHECK(rate_at(steps, 1'000'000'000'000, 40) == doctest::Approx(0.0005));
}

TEST_CASE("cosine: the rate at first, the mean half-way, the final rate at the end, symmetric") {
  const auto plain = scheduled(0.8, {.schedule = "cosine", .final_rate = 0.2});
  CHECK(rate_at(plain, 0, 100) == 0.8);
  CHECK(rate_at(plain, 50, 100) == doctest::Approx(0.5));
  CHECK(rate_at(plain, 25, 100) == doctest::Approx(0.5 + 0.3 * std::numbers::sqrt2 / 2));
  CHECK(rate_at(plain, 99, 100) ==
        doctest::Approx(0.2 + 0.6 * (1 + std::cos(std::numbers::pi * 0.99)) / 2));
  for (const std::uint64_t end : {100, 101, 1'000'000}) CHECK(rate_at(plain, end, 100) == 0.2);
  for (std::uint64_t step = 0; step <= 50; ++step)
    CHECK(rate_at(plain, step, 100) + rate_at(plain, 100 - step, 100) == doctest::Approx(1.0));
  const auto warm = scheduled(0.8, {.schedule = "cosine", .warmup_steps = 20});
  CHECK(rate_at(warm, 20, 100) == 0.8);
  CHECK(rate_at(warm, 60, 100) == doctest::Approx(0.4));  // half of the steps after the warm-up
  CHECK(rate_at(warm, 100, 100) == 0);
  CHECK(rate_at(scheduled(0.8, {.schedule = "cosine"}), 0, 1) == 0.8);
}

TEST_CASE("options are checked as they are read, and each kind has its own") {
  const auto sgd = make_optimizer("sgd", {{"rate", 0.5}, {"momentum", 0.9}, {"nesterov", true}},
                                  {{"schedule", std::string("cosine")},
                                   {"warmup_steps", std::int64_t{10}},
                                   {"final_rate", 0.1}});
  REQUIRE(sgd.ok());
  CHECK(sgd->rate == 0.5);
  CHECK(sgd->rule.state_rows() == 1);
  CHECK(sgd->schedule.warmup_steps == 10);
  const auto adam =
      make_optimizer("adam", {{"beta1", 0.5}, {"epsilon", 1e-3}, {"weight_decay", 0.1}}, {});
  REQUIRE(adam.ok());
  CHECK(adam->rate == 1e-3);
  CHECK(adam->rule.kind == gpu::UpdateRule::Kind::adam);
  CHECK(adam->rule.beta1 == 0.5);
  CHECK(adam->rule.beta2 == 0.999);
  CHECK(adam->rule.epsilon == 1e-3);
  CHECK(adam->rule.weight_decay == 0.1);
  CHECK(adam->rule.state_rows() == 2);
  const auto adamw = make_optimizer("adamw", {}, {});
  REQUIRE(adamw.ok());
  CHECK(adamw->rule.kind == gpu::UpdateRule::Kind::adamw);
  CHECK(adamw->rule.weight_decay == 0.01);
  CHECK(make_optimizer("sgd", {}, {})->rule.state_rows() == 0);

  for (const OptimizerKind& kind : optimizer_kinds()) {
    CAPTURE(kind.name);
    CHECK(make_optimizer(kind.name, {}, {}).ok());
    CHECK(kind.summary.size() > 20);
    CHECK(kind.source.size() > 10);
    for (const ParameterSpec& parameter : kind.parameters) CHECK(parameter.notes.help.size() > 5);
    CHECK(optimizer_refusal(kind.name, {{"rate", 0.0}}).starts_with("optimizer.rate"));
    CHECK(optimizer_refusal(kind.name, {{"weight_decay", -0.1}})
              .starts_with("optimizer.weight_decay"));
    CHECK(optimizer_refusal(kind.name, {{"rates", 0.5}}).starts_with("optimizer.rates"));
  }
  CHECK(optimizer_refusal("sgd", {{"momentum", 1.0}}).starts_with("optimizer.momentum"));
  CHECK(optimizer_refusal("adam", {{"momentum", 0.9}}).starts_with("optimizer.momentum: unknown"));
  CHECK(optimizer_refusal("adam", {{"beta2", 1.0}}).starts_with("optimizer.beta2"));
  CHECK(optimizer_refusal("adam", {{"epsilon", 0.0}}).starts_with("optimizer.epsilon"));
  CHECK(optimizer_refusal("lion", {}) ==
        "optimizer.kind: there is no optimizer 'lion', only adam, adamw, muon, sgd");
  CHECK(optimizer_refusal("sgd", {}, {{"schedule", std::string("warmup")}})
            .find("constant, step, cosine") != std::string::npos);
  CHECK(optimizer_refusal("sgd", {}, {{"warmup_steps", std::int64_t{-1}}})
            .starts_with("optimizer.warmup_steps"));
  CHECK(optimizer_refusal("sgd", {}, {{"schedule", std::string("step")}})
            .starts_with("optimizer.milestones"));
  CHECK(optimizer_refusal("sgd", {}, {{"milestones", std::vector<std::int64_t>{0}}})
            .starts_with("optimizer.milestones"));
}
