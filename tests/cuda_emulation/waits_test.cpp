// Waits that show only where a GPU's work is done late: memory is zero for every thread, downloads
// are over when they return, and a mark is of each GPU.
#include <future>

#include "tests/cuda/test_util.hpp"
#include "tests/cuda_emulation/control.hpp"

using namespace gossamer;
using namespace gossamer::gpu;
using emulation::With;

TEST_CASE("emulated: memory is zero for every thread before it is given out") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    const With with({.seed = seed, .late = true});
    GOSSAMER_GPU(gpu_device);
    constexpr std::size_t kLength = 100;
    std::vector<float*> rows;
    for (int i = 0; i < 4; ++i) {
      const auto allocate = [&] { return gpu_device->allocate(kLength * sizeof(float)); };
      auto* row = static_cast<float*>(std::async(std::launch::async, allocate).get());
      const FillRequest<float> fill{1, row, kLength};
      gpu_device->execute(std::span(&fill, 1));
      rows.push_back(row);
    }
    gpu_device->finish();
    std::vector<float> values(kLength);
    for (float* row : rows) {
      gpu_device->download(values.data(), row, kLength * sizeof(float));
      CHECK(values == std::vector<float>(kLength, 1));
      gpu_device->release(row);
    }
  }
}

TEST_CASE("emulated: a download into pinned memory is over when it returns") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const With with({.seed = seed, .late = true});
    GOSSAMER_GPU(gpu_device);
    for (const std::size_t length : {std::size_t{100}, std::size_t{50'000}}) {
      const Held<float> row(*gpu_device, std::vector<float>(length, 1));
      auto* host = static_cast<float*>(gpu_device->allocate_host(length * sizeof(float)));
      std::fill_n(host, length, 0.0F);
      const ScaleRequest<float> twice{2, row.get(), length};
      for (int i = 0; i < 10; ++i) gpu_device->execute(std::span(&twice, 1));
      gpu_device->download(host, row.get(), length * sizeof(float));
      CHECK(std::vector<float>(host, host + length) == std::vector<float>(length, 1 << 10));
      gpu_device->release_host(host);
    }
  }
}

TEST_CASE("emulated GPUs: a thread that waits for a mark waits for the work of each GPU") {
  constexpr std::size_t kLength = 1000;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const With with({.gpus = 2, .seed = seed, .late = true});
    const auto device = gpus_or_skip(2);
    const Held<float> row(*device, std::vector<float>(kLength, 1), 0, 1),
        copy(*device, kLength, 0, 1);
    device->finish();
    const ScaleRequest<float> twice{2, row.get(), kLength};
    for (int k = 0; k < 5; ++k) device->execute(std::span(&twice, 1));
    const auto mark = device->mark();
    std::async(std::launch::async, [&] {
      device->wait(mark);
      const CopyRequest<float> request{row.get(), copy.get(), kLength};
      device->execute(std::span(&request, 1));
      device->finish();
    }).get();
    CHECK(copy.values() == std::vector<float>(kLength, 32));
  }
}
