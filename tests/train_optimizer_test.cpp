// The optimizer against recurrences written out by hand, through the device's update.
#include <doctest/doctest.h>

#include <vector>

#include "gpu/cpu_device.hpp"
#include "train/optimizer.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// x after each of the steps on f(x) = ½ x² from x = 1 (gradient x).
std::vector<double> trajectory(const OptimizerOptions& options, int steps) {
  gpu::CpuDevice device(1);
  double x = 1, v = 0;
  std::vector<double> xs;
  for (int s = 0; s < steps; ++s) {
    const double gradient = x;
    const gpu::UpdateJob<double> job{.parameters = &x, .momentum = options.momentum > 0 ? &v : nullptr,
                                     .gradient = &gradient, .length = 1, .rate = rate_at(options, static_cast<std::uint64_t>(s))};
    device.update({options.momentum, options.nesterov, options.weight_decay}, std::span(&job, 1));
    xs.push_back(x);
  }
  return xs;
}

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-14));
}

}  // namespace

TEST_CASE("plain SGD, with and without weight decay") {
  check_close(trajectory({.rate = 0.5}, 3), {0.5, 0.25, 0.125});
  check_close(trajectory({.rate = 0.5, .weight_decay = 0.5}, 3), {0.25, 0.0625, 0.015625});
}

TEST_CASE("momentum: v ← m v + g, x ← x − γ v") {
  // g = 1, v = 1, x = 0.9; g = 0.9, v = 0.5 + 0.9 = 1.4, x = 0.76; g = 0.76, v = 0.7 + 0.76 = 1.46, x = 0.614.
  check_close(trajectory({.rate = 0.1, .momentum = 0.5}, 3), {0.9, 0.76, 0.614});
}

TEST_CASE("Nesterov: x ← x − γ (g + m v)") {
  // v = 1, x = 1 − 0.1 · 1.5 = 0.85; v = 0.5 + 0.85 = 1.35, x = 0.85 − 0.1 · (0.85 + 0.675) = 0.6975.
  check_close(trajectory({.rate = 0.1, .momentum = 0.5, .nesterov = true}, 2), {0.85, 0.6975});
}

TEST_CASE("Nesterov with weight decay") {
  // g = 1 + 0.1 = 1.1, v = 1.1, x = 1 − 0.1 · (1.1 + 0.55) = 0.835.
  check_close(trajectory({.rate = 0.1, .momentum = 0.5, .nesterov = true, .weight_decay = 0.1}, 1), {0.835});
}

TEST_CASE("warm-up grows linearly to the rate and stays there") {
  const OptimizerOptions warm{.rate = 0.8, .schedule = "warmup", .warmup_steps = 3};
  CHECK(rate_at(warm, 0) == doctest::Approx(0.2));
  CHECK(rate_at(warm, 1) == doctest::Approx(0.4));
  CHECK(rate_at(warm, 2) == doctest::Approx(0.6));
  CHECK(rate_at(warm, 3) == 0.8);
  CHECK(rate_at(warm, 1'000'000'000'000) == 0.8);
  CHECK(rate_at({.rate = 0.8, .warmup_steps = 3}, 0) == 0.8);  // constant: the key is silent
  CHECK(rate_at({.rate = 0.8, .schedule = "warmup"}, 0) == 0.8);
}

TEST_CASE("options are checked as they are read") {
  const auto read = [](const ParameterValues& values) { return optimizer_parameters().read("optimizer", values); };
  CHECK(read({{"rate", 0.5}, {"momentum", 0.9}, {"nesterov", true}, {"schedule", std::string("warmup")},
              {"warmup_steps", std::int64_t{10}}}).ok());
  CHECK(read({{"rate", 0.0}}).error().message.find("optimizer.rate") == 0);
  CHECK_FALSE(read({{"momentum", 1.0}}).ok());
  CHECK_FALSE(read({{"weight_decay", -0.1}}).ok());
  CHECK_FALSE(read({{"schedule", std::string("cosine")}}).ok());
  CHECK_FALSE(read({{"warmup_steps", std::int64_t{-1}}}).ok());
  CHECK_FALSE(read({{"rates", 0.5}}).ok());
}
