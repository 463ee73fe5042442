// Muon's step with matrices on a GPU, against the CPU in double.
#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

TEST_CASE_TEMPLATE("GPU: Muon's steps with matrices of any shape", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  BasicCpuDevice<double> cpu(1);
  struct Shape {
    std::size_t rows, columns;
  };
  constexpr Shape kShapes[] = {{1, 1}, {5, 5}, {1, 9}, {9, 1}, {70, 33}, {33, 70}, {128, 64}};
  for (const bool nesterov : {true, false}) {
    const UpdateRule rule{
        .momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.1, .kind = UpdateRule::Kind::muon};
    std::vector<Held<Real>> x, m, g;
    std::vector<std::vector<double>> cpu_x, cpu_m, cpu_g;
    std::vector<UpdateJob<Real>> jobs;
    std::vector<UpdateJob<double>> cpu_jobs;
    for (const auto& [rows, columns] : kShapes) {
      const std::size_t length = rows * columns;
      const auto hold = [&](std::vector<Held<Real>>& on_gpu, std::vector<std::vector<double>>& twin,
                            std::uint64_t stream) {
        const auto values = normal<Real>(length, 10 * length + stream);
        on_gpu.emplace_back(*gpu_device, values, length % 2);
        twin.push_back(as<double>(values));
      };
      hold(x, cpu_x, 1), hold(m, cpu_m, 2), hold(g, cpu_g, 3);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int columns = static_cast<int>(kShapes[i].columns);
      const std::size_t length = kShapes[i].rows * kShapes[i].columns;
      const double rate = 0.1 / static_cast<double>(i + 1);
      jobs.push_back({.parameters = x[i].get(),
                      .state = {m[i].get(), nullptr},
                      .gradient = g[i].get(),
                      .length = length,
                      .rate = rate,
                      .columns = columns});
      cpu_jobs.push_back({.parameters = cpu_x[i].data(),
                          .state = {cpu_m[i].data(), nullptr},
                          .gradient = cpu_g[i].data(),
                          .length = length,
                          .rate = rate,
                          .columns = columns});
    }
    for (int step = 0; step < 3; ++step) {
      gpu_device->update(rule, jobs);
      cpu.update(rule, cpu_jobs);
    }
    // Five iterations multiply the smallest singular values, and their rounding, by hundreds.
    const double roundings = 2000 * kRoundings<Real>;
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(kShapes[i].rows);
      CAPTURE(kShapes[i].columns);
      CHECK(worst_error(x[i].values(), cpu_x[i]) < roundings);
      CHECK(worst_error(m[i].values(), cpu_m[i]) < kRoundings<Real>);
      CHECK(worst_error(g[i].values(), cpu_g[i]) == 0);
    }
  }
  gpu_device->update({.kind = UpdateRule::Kind::muon}, std::span<const UpdateJob<Real>>());
}

// The scratch memory of this step has a power of two of values, and one more for the norm.
TEST_CASE("GPU: Muon's step writes no further than its scratch memory") {
  GOSSAMER_GPU(gpu_device);
  constexpr std::size_t kLength = 64 * 64;
  const Held<float> x(*gpu_device, normal<float>(kLength, 1)),
      m(*gpu_device, std::vector<float>(kLength)), g(*gpu_device, normal<float>(kLength, 2));
  const UpdateJob<float> job{.parameters = x.get(),
                             .state = {m.get(), nullptr},
                             .gradient = g.get(),
                             .length = kLength,
                             .rate = 0.1,
                             .columns = 64};
  gpu_device->update({.momentum = 0.9, .kind = UpdateRule::Kind::muon}, std::span(&job, 1));
  for (const float value : x.values()) CHECK(std::isfinite(value));
}
