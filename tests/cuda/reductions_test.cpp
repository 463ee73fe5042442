// Numbers from rows: a GPU against the CPU in double, the same bits every time.
#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

TEST_CASE_TEMPLATE("GPU: dot and squared distance, in double", Real, float, double) {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  std::vector<Held<Real>> held;
  std::vector<std::vector<double>> on_cpu;
  std::vector<ReduceRequest<Real>> requests;
  std::vector<ReduceRequest<double>> cpu_requests;
  std::vector<double> sizes;
  for (const std::size_t length : kLengths)
    for (const std::size_t offset : {0, 1}) {
      const auto a = normal<Real>(length, 2 * held.size()),
                 b = normal<Real>(length, 2 * held.size() + 1);
      held.emplace_back(*gpu_device, a, offset);
      held.emplace_back(*gpu_device, b);
      on_cpu.push_back(as<double>(a));
      on_cpu.push_back(as<double>(b));
      sizes.push_back(1 + static_cast<double>(length));
    }
  for (std::size_t i = 0; i < held.size(); i += 2) {
    requests.push_back({held[i].get(), held[i + 1].get(), held[i].length(), NAN});
    cpu_requests.push_back({on_cpu[i].data(), on_cpu[i + 1].data(), on_cpu[i].size(), NAN});
  }
  const auto compare = [&] {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(requests[i].length);
      CHECK(std::abs(requests[i].result - cpu_requests[i].result) <= 1e-13 * sizes[i]);
    }
  };
  gpu_device->dot(requests);
  cpu.dot(cpu_requests);
  compare();
  std::vector<double> first;
  for (const auto& request : requests) first.push_back(request.result);
  gpu_device->dot(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) CHECK(requests[i].result == first[i]);
  for (std::size_t i = 0; i < requests.size();
       ++i) {  // whatever else is asked for in the same call
    gpu_device->dot(std::span(&requests[i], 1));
    CHECK(requests[i].result == first[i]);
  }
  gpu_device->squared_distance(requests);
  cpu.squared_distance(cpu_requests);
  compare();
  gpu_device->dot(std::span<ReduceRequest<Real>>());
  gpu_device->squared_distance(std::span<ReduceRequest<Real>>());
}

TEST_CASE_TEMPLATE("GPU: sketches are the CPU's", Real, float, double) {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
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
    gpu_device->sketch(requests);
    cpu.sketch(cpu_requests);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(rows[i].size());
      CHECK(worst_error(sketches[i], expected[i]) < 1e-12);
    }
    const auto first = sketches;
    gpu_device->sketch(requests);
    CHECK(sketches == first);
  }
  gpu_device->sketch(std::span<const SketchRequest<Real>>());
}
