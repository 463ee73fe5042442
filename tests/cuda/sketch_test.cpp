// Sketches: a GPU against the CPU, the same bits every time.
#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

TEST_CASE("GPU: the sketch of a row of which a run has several blocks") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  const auto row = normal<float>(1'100'003, 1);
  const Held<float> held(*gpu_device, row);
  std::vector<double> sketch(sketch_length(row.size())), expected(sketch.size());
  const SketchRequest<float> request{held.get(), row.size(), 3, sketch.data()};
  gpu_device->execute(std::span(&request, 1));
  const SketchRequest<float> on_cpu{row.data(), row.size(), 3, expected.data()};
  cpu.execute(std::span(&on_cpu, 1));
  CHECK(worst_error(sketch, expected) < 1e-12);
}

TEST_CASE_TEMPLATE("GPU: sketches are the CPU's", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  BasicCpuDevice<Real> cpu(1);
  std::vector<Held<Real>> held;
  std::vector<std::vector<Real>> rows;
  for (const std::size_t length : kLengths) {
    if (length == 0) continue;
    rows.push_back(normal<Real>(length, rows.size()));
    held.emplace_back(*gpu_device, rows.back(), length % 2);
  }
  for (const std::uint64_t seed : {1ULL, 0xFFFF'FFFF'0000'0007ULL}) {
    std::vector<std::vector<double>> sketches, expected;
    for (const auto& row : rows) {
      sketches.emplace_back(sketch_length(row.size()), NAN);
      expected.emplace_back(sketch_length(row.size()), NAN);
    }
    std::vector<SketchRequest<Real>> requests, cpu_requests;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      requests.push_back({held[i].get(), rows[i].size(), seed, sketches[i].data()});
      cpu_requests.push_back({rows[i].data(), rows[i].size(), seed, expected[i].data()});
    }
    gpu_device->execute(requests);
    cpu.execute(cpu_requests);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(rows[i].size());
      CHECK(worst_error(sketches[i], expected[i]) < 1e-12);
    }
    const auto first = sketches;
    gpu_device->execute(requests);
    CHECK(sketches == first);
  }
  gpu_device->execute(std::span<const SketchRequest<Real>>());
}
