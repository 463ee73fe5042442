// Properties of several GPUs that only the emulation shows: no delay between their streams changes
// a bit, rows lie on the right GPU, no call waits for GPUs that it does not need, and errors name
// the GPU.
#include <atomic>
#include <string>
#include <thread>

#include "cuda_runtime.h"
#include "gpu/device_rows.hpp"
#include "tests/cuda/multi_gpu_test_util.hpp"
#include "tests/cuda_emulation/control.hpp"
#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;
using emulation::With;

namespace {

std::unique_ptr<Device> device_of(std::vector<int> gpus) {
  auto made = cuda::make_cuda_device({.gpus = std::move(gpus)});
  if (!made.ok()) FAIL(made.error().message);
  return std::move(made).value();
}

/// The message of the exception that a call throws.
template <class Call>
std::string thrown(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("emulated GPUs: no delay between GPUs and threads changes a bit") {
  for (const int gpus : {2, 3})
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(gpus);
      CAPTURE(seed);
      const With with(
          {.gpus = gpus, .order = emulation::Order::shuffled, .seed = seed, .late = true});
      const auto device = gpus_or_skip(gpus);
      check_relay(*device, 6);
      check_late_reader(*device);
    }
}

TEST_CASE("emulated GPUs: memory is on the GPU that was asked for") {
  const With with({.gpus = 4});
  const auto device = device_of({1, 3});
  const Held<float> here(*device, 50), there(*device, 50, 0, 1);
  CHECK(emulation::gpu_of(here.get()) == 1);
  CHECK(emulation::gpu_of(there.get()) == 3);
  CHECK(emulation::gpu_of(&with) == -1);
}

TEST_CASE("emulated GPUs: requests are served where their output lies, and calls never wait") {
  const With with({.gpus = 2});
  const auto device = device_of({0, 1});
  const Held<float> here(*device, std::vector<float>(100, 1)),
      there(*device, std::vector<float>(100, 1), 0, 1);
  const auto work = [&](auto change) {
    change();
    const emulation::Counts before = emulation::counts();
    for (int i = 0; i < 10; ++i) change();
    const emulation::Counts after = emulation::counts();
    CHECK(after.synchronisations == before.synchronisations);
    CHECK(after.pageable_copies == before.pageable_copies);
    CHECK(after.allocations == before.allocations);
    return std::pair(after.kernels_of[0] - before.kernels_of[0],
                     after.kernels_of[1] - before.kernels_of[1]);
  };
  const CopyRequest<float> up{here.get(), there.get(), 100};
  const ScaleRequest<float> scales[] = {
      {2, here.get(), 100}, {3, there.get(), 100}, {2, here.get(), 0}};
  CHECK(work([&] { device->execute(std::span(&up, 1)); }) ==
        std::pair<std::uint64_t, std::uint64_t>(0, 10));
  CHECK(work([&] { device->execute(scales); }) == std::pair<std::uint64_t, std::uint64_t>(10, 10));
  CHECK(work([&] { device->execute(std::span(scales).first(1)); }) ==
        std::pair<std::uint64_t, std::uint64_t>(10, 0));
}

TEST_CASE("emulated GPUs: threads at once, each in its own order") {
  const With with({.gpus = 3, .late = true});
  const auto device = device_of({0, 1, 2});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      constexpr std::size_t kLength = 500;
      float* rows[3];
      for (int gpu_index = 0; gpu_index < 3; ++gpu_index)
        rows[gpu_index] =
            static_cast<float*>(device->allocate(kLength * sizeof(float), (gpu_index + t) % 3));
      for (int round = 0; round < 10; ++round) {
        const FillRequest<float> fill{static_cast<float>(round + t), rows[0], kLength};
        device->execute(std::span(&fill, 1));
        for (int hop = 0; hop < 3; ++hop) {  // around all GPUs
          const CopyRequest<float> copy{rows[hop], rows[(hop + 1) % 3], kLength};
          device->execute(std::span(&copy, 1));
        }
        for (const float* row : {rows[1], rows[2]}) {
          std::vector<float> copied(kLength);
          device->download(copied.data(), row, kLength * sizeof(float));
          if (copied != std::vector<float>(kLength, static_cast<float>(round + t))) ++wrong;
        }
      }
      for (float* row : rows) device->release(row);
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("emulated GPUs: everything is given back, also when one GPU is too small for its rows") {
  const emulation::Holdings before = emulation::holdings();
  {
    const With with({.gpus = 2, .memory_per_gpu = 64 << 20});
    const auto device = device_of({0, 1});
    check_relay(*device, 2);
    const emulation::Holdings some = emulation::holdings();
    void* most = device->allocate(40 << 20, 1);  // the first block fits, the second does not
    CHECK_THROWS_AS(DeviceRows<float>(*device, 8, 2 << 20), std::bad_alloc);
    device->release(most);
    CHECK(emulation::holdings() == some);
    check_relay(*device, 2);
  }
  CHECK(emulation::holdings() == before);
}

TEST_CASE("emulated GPUs: an error names the GPU") {
  const With with({.gpus = 2});
  const auto device = device_of({0, 1});
  const Held<float> here(*device, std::vector<float>(10, 1)),
      there(*device, std::vector<float>(10, 1), 0, 1);
  const ScaleRequest<float> both[] = {{2, here.get(), 10}, {2, there.get(), 10}};
  for (const int gpu : {0, 1}) {
    emulation::fail("cudaLaunchKernel", cudaErrorLaunchFailure, gpu);
    const std::string message = thrown([&] { device->execute(both); });
    CHECK(contains(
        message, "cuda:" + std::to_string(gpu) + ": cudaLaunchKernel: unspecified launch failure"));
  }
  emulation::fail("cudaStreamSynchronize", cudaErrorLaunchFailure, 1);
  CHECK(contains(thrown([&] { device->finish(); }), "cuda:1: cudaStreamSynchronize"));
}

TEST_CASE("emulated GPUs: GPUs without peer access cannot be one device") {
  {
    const With with({.gpus = 2, .peer_access = false});
    CHECK(cuda::discover_gpus().gpus[0].reaches.empty());
    const auto made = cuda::make_cuda_device({.gpus = {0, 1}});
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().kind == ErrorKind::invalid);
    CHECK(contains(made.error().message, "cuda:0 cannot reach the memory of cuda:1"));
    CHECK(device_of({1})->gpu_count() == 1);
  }
  const With with({.gpus = 3});
  CHECK(cuda::discover_gpus().gpus[1].reaches == std::vector<int>{0, 2});
  CHECK(device_of({0, 2})->description() == "cuda:0,2, 2 × Emulated GPU, 1.0 GiB");
  emulation::fail("cudaDeviceEnablePeerAccess", cudaErrorUnknown);
  const auto made = cuda::make_cuda_device({.gpus = {0, 1}});
  REQUIRE_FALSE(made.ok());
  CHECK(contains(made.error().message,
                 "cuda:0-1 cannot be used: cudaDeviceEnablePeerAccess: unknown error"));
}
