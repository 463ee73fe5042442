// Threads that ask one device for work: which gives way, and which waits for another's.
#include <thread>

#include "tests/cuda/test_util.hpp"
#include "tests/cuda_emulation/control.hpp"

using namespace gossamer;
using emulation::With;
using gpu::Device;
using gpu::Held;

namespace {

std::unique_ptr<Device> emulated() {
  auto made = gpu::cuda::make_cuda_device({});
  if (!made.ok()) FAIL(made.error().message);
  return std::move(made).value();
}

}  // namespace

TEST_CASE(
    "a thread that gives way has a stream of the least priority, and others of the greatest") {
  const auto gpu_device = emulated();
  const std::size_t before = emulation::priorities().size();
  const auto work = [&] { const Held<float> some(*gpu_device, std::vector<float>(10)); };
  work();
  std::thread([&] {
    gpu_device->give_way();
    work();
  }).join();
  const std::vector<int> all = emulation::priorities();
  REQUIRE(all.size() == before + 2);
  CHECK(all[before] == -5);
  CHECK(all[before + 1] == 0);
}

TEST_CASE("a thread that waits for another's mark sees what that one had asked for") {
  constexpr std::size_t kLength = 1000;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const With late({.gpus = 1, .seed = seed, .late = true});
    const auto gpu_device = emulated();
    const Held<float> row(*gpu_device, std::vector<float>(kLength, 1.0F)),
        copy(*gpu_device, kLength);
    gpu_device->finish();
    const gpu::ScaleRequest<float> twice{2, row.get(), kLength};
    for (int k = 0; k < 5; ++k) gpu_device->execute(std::span(&twice, 1));
    const auto mark = gpu_device->mark();
    std::thread([&] {
      gpu_device->wait(mark);
      const gpu::CopyRequest<float> request{row.get(), copy.get(), kLength};
      gpu_device->execute(std::span(&request, 1));
      gpu_device->finish();
    }).join();
    CHECK(copy.values() == std::vector<float>(kLength, 32.0F));
  }
}
