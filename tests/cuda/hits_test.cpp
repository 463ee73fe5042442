// Hits of evaluations on a GPU: which samples count.
#include <limits>

#include "tests/cuda/training_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

TEST_CASE("GPU: a hit is a sample with its largest output, the first of equal ones, at its label") {
  GOSSAMER_GPU(gpu_device);
  const CompiledModel network = compiled(chain({Dense{.units = 3}}, Loss::softmax_cross_entropy),
                                         {.width = 1, .classes = 3}, 4);
  const Held<float> features(*gpu_device, std::vector<float>{1, 2, 3, 4});
  const Held<std::int32_t> labels(*gpu_device, std::vector<std::int32_t>{1, 2, 2, 1});
  const Held<std::int64_t> hits(*gpu_device, std::vector<std::int64_t>{10, 20});
  const Held<double> losses(*gpu_device, std::vector<double>{0, 0});
  const Held<float> second(*gpu_device, std::vector<float>{0, 0, 0, 0, 0, 1}),
      tied(*gpu_device, std::vector<float>{0, 0, 0, 0, 1, 1});
  const std::uint32_t samples[] = {0, 1, 2, 3};
  const gpu::Job<float> jobs[] = {{.parameters = second.get(),
                                   .samples = samples,
                                   .batch = 4,
                                   .loss = losses.get(),
                                   .hits = hits.get()},
                                  {.parameters = tied.get(),
                                   .samples = samples,
                                   .batch = 4,
                                   .loss = losses.get() + 1,
                                   .hits = hits.get() + 1}};
  gpu_device->train(
      {.program = &network.program(), .tables = {{features.get(), labels.get(), nullptr}}},
      gpu::Pass::evaluate, jobs);
  CHECK(hits.values() == std::vector<std::int64_t>{12, 22});
}

TEST_CASE_TEMPLATE("GPU: a token outside the vocabulary makes a sample's loss NaN, and no hit",
                   Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  // Parameters follow the table, so that a row past its end would have values.
  const CompiledModel network =
      compiled(chain({Reshape{.height = 0, .channels = 1},
                      Embedding{.vocabulary = 3, .features = 2}, Dense{.units = 3}},
                     Loss::softmax_cross_entropy),
               {.width = 1, .classes = 3}, 1);
  const std::vector<float> tokens{-1, 0, 2, 3, 4, std::numeric_limits<float>::quiet_NaN()};
  gpu::BasicCpuDevice<Real> cpu(1);
  const auto check = [&](gpu::BasicDevice<Real>& device) {
    const EachAlone<Real> found(device, network, tokens.size(), tokens);
    CHECK(found.have_nan() == std::vector<bool>{true, false, false, true, true, true});
    CHECK(found.hits == std::vector<std::int64_t>{0, 1, 1, 0, 0, 0});  // the first of equal outputs
  };
  check(cpu);
  check(*gpu_device);
}

TEST_CASE_TEMPLATE("GPU: outputs with a NaN are no hits, as on the CPU", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
  const CompiledModel network = compiled(chain({Dense{.units = 3}}, Loss::softmax_cross_entropy),
                                         {.width = 1, .classes = 3}, 3);
  const std::vector<std::vector<Real>> rows{
      {0, 0, 0, kNan, 0, 0}, {0, 0, 0, 0, kNan, 0}, {0, 0, 0, 0, 0, kNan}, {0, 0, 0, 0, 1, 0}};
  const std::uint32_t samples[] = {0, 1, 2};
  const auto hits_on = [&](gpu::BasicDevice<Real>& device) {
    const Held<float> features(device, std::vector<float>{1, 2, 3});
    const Held<std::int32_t> labels(device, std::vector<std::int32_t>{0, 1, 2});
    const Held<std::int64_t> hits(device, std::vector<std::int64_t>(rows.size()));
    const Held<double> losses(device, std::vector<double>(rows.size()));
    std::vector<Held<Real>> parameters;
    std::vector<gpu::Job<Real>> jobs;
    for (const std::vector<Real>& row : rows) {
      parameters.emplace_back(device, row);
      jobs.push_back({.parameters = parameters.back().get(),
                      .samples = samples,
                      .batch = 3,
                      .loss = losses.get() + jobs.size(),
                      .hits = hits.get() + jobs.size()});
    }
    device.train(
        {.program = &network.program(), .tables = {{features.get(), labels.get(), nullptr}}},
        gpu::Pass::evaluate, jobs);
    return hits.values();
  };
  gpu::BasicCpuDevice<Real> cpu(1);
  CHECK(hits_on(cpu) == std::vector<std::int64_t>{0, 0, 0, 1});
  CHECK(hits_on(*gpu_device) == hits_on(cpu));
}
