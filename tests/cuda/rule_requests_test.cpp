// Distances between rows and order statistics: a GPU gives the bits of the CPU.
#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// Rows in the memory of a GPU and of the host.
template <class Real>
struct Twins {
  Twins(Memory& device, std::size_t count, std::size_t length) {
    for (std::size_t k = 0; k < count; ++k) {
      values.push_back(normal<Real>(length, k));
      held.emplace_back(device, values.back(), k % 2);
    }
    for (std::size_t k = 0; k < count; ++k) {
      on_gpu.push_back(held[k].get());
      on_cpu.push_back(values[k].data());
    }
  }
  std::vector<std::vector<Real>> values;
  std::vector<Held<Real>> held;
  std::vector<const Real*> on_gpu, on_cpu;
};

}  // namespace

TEST_CASE_TEMPLATE("GPU: distances have the bits of the CPU's", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  BasicCpuDevice<Real> cpu(1);
  for (const bool to_first : {true, false}) {
    std::vector<Twins<Real>> twins;
    for (const std::size_t length : kLengths)
      twins.emplace_back(*gpu_device, length % 5, length);  // no row, too
    twins.emplace_back(*gpu_device, 25, 70);                // more pairs than a block has threads
    std::vector<std::vector<double>> results, expected;
    std::vector<DistancesRequest<Real>> requests, cpu_requests;
    for (const auto& each : twins) {
      const std::size_t length = each.values.empty() ? 0 : each.values[0].size();
      requests.push_back({each.on_gpu, to_first, length});
      cpu_requests.push_back({each.on_cpu, to_first, length});
      results.emplace_back(requests.back().pairs(), NAN);
      expected.emplace_back(requests.back().pairs(), NAN);
    }
    for (std::size_t k = 0; k < requests.size(); ++k) {
      requests[k].distances = results[k].data();
      cpu_requests[k].distances = expected[k].data();
    }
    gpu_device->execute(requests);
    cpu.execute(cpu_requests);
    CHECK(results == expected);
  }
  gpu_device->execute(std::span<const DistancesRequest<Real>>());
}

TEST_CASE_TEMPLATE("GPU: order statistics have the bits of the CPU's", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  BasicCpuDevice<Real> cpu(1);
  std::vector<Twins<Real>> twins;
  for (const std::size_t length : kLengths) {
    twins.emplace_back(*gpu_device, 6, length);
    if (length > 2)  // equal values, in different rows
      for (const std::size_t k : {2, 5}) {
        twins.back().values[k][1] = twins.back().values[0][1];
        twins.back().held[k].set(twins.back().values[k]);
      }
  }
  for (const auto& [first, count] :
       {std::pair<std::size_t, std::size_t>(0, 6), {1, 4}, {2, 2}, {5, 1}, {0, 0}}) {
    std::vector<Held<Real>> out;
    std::vector<std::vector<Real>> expected;
    std::vector<OrderStatisticsRequest<Real>> requests, cpu_requests;
    for (const auto& each : twins) {
      const std::size_t length = each.values[0].size();
      out.emplace_back(*gpu_device, length, 1);
      expected.emplace_back(length);
      requests.push_back(
          {each.on_gpu[3], out.back().get(), each.on_gpu, first, count, 0.25, length});
      cpu_requests.push_back(
          {each.on_cpu[3], expected.back().data(), each.on_cpu, first, count, 0.25, length});
    }
    gpu_device->execute(requests);
    cpu.execute(cpu_requests);
    for (std::size_t k = 0; k < out.size(); ++k) CHECK(same_bits(out[k].values(), expected[k]));
  }
  gpu_device->execute(std::span<const OrderStatisticsRequest<Real>>());
}
