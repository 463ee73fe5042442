// Limits that only the emulation can set: the least GPU, the bound on the memory of training, and
// errors that are over once they have been thrown.
#include "cuda_runtime.h"
#include "tests/cuda/training_test_util.hpp"
#include "tests/cuda_emulation/control.hpp"
#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;
using emulation::With;

TEST_CASE("emulated: GPUs of compute capability 8 are used, and older ones are named") {
  {
    const With with({.gpus = 1, .compute_major = 8});
    CHECK(gpu::cuda::discover_gpus().problem == "");
    CHECK(gpu::cuda::make_cuda_device({}).ok());
  }
  const With with({.gpus = 1, .compute_major = 7});
  const auto made = gpu::cuda::make_cuda_device({});
  REQUIRE_FALSE(made.ok());
  CHECK(contains(made.error().message, "Emulated GPU has compute capability 7.0"));
}

TEST_CASE("emulated: training takes an eighth of a GPU's memory at most, in batches of peers") {
  constexpr std::size_t kPeers = 128, kMemory = std::size_t{64} << 20;
  constexpr ModelContext kData{.width = 7, .classes = 3};
  const With with({.memory_per_gpu = kMemory});
  GOSSAMER_GPU(gpu_device);
  const CompiledModel network = compiled(
      chain({Dense{.units = 200}, Dense{.units = 3}}, Loss::softmax_cross_entropy), kData, 64);
  REQUIRE(network.program().workspace * sizeof(float) * kPeers > kMemory / 8);
  Fleet<float> fleet(*gpu_device, network, Samples(kData, 40), kPeers);
  fleet.run({}, {1}, {0});  // memory that does not depend on the number of peers
  const std::size_t before = emulation::holdings().gpu_bytes;
  fleet.run({}, {64});
  CHECK(emulation::holdings().gpu_bytes - before <= kMemory / 8 + (1 << 20));
}

TEST_CASE("emulated: a device goes on after there was no memory for what it uploads") {
  for (const char* function : {"cudaMallocHost", "cudaMalloc"}) {
    CAPTURE(function);
    GOSSAMER_GPU(gpu_device);
    const Held<float> row(*gpu_device, std::vector<float>{1, 2});
    const std::vector<gpu::ScaleRequest<float>> once(1, {2, row.get(), 2}),
        many(20'000, {1, row.get(), 2});
    gpu_device->execute(std::span(once));
    emulation::fail(function, cudaErrorMemoryAllocation);
    CHECK_THROWS_AS(gpu_device->execute(std::span(many)), std::bad_alloc);
    gpu_device->execute(std::span(once));
    gpu_device->execute(std::span(many));
    CHECK(row.values() == std::vector<float>{4, 8});
  }
}

TEST_CASE("emulated: an error that was thrown is over") {
  GOSSAMER_GPU(gpu_device);
  CHECK_THROWS_AS(gpu_device->allocate(std::size_t{1} << 40), std::bad_alloc);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  const Held<float> row(*gpu_device, std::vector<float>{1, 2});
  const gpu::ScaleRequest<float> twice{2, row.get(), 2};
  emulation::fail("cudaLaunchKernel", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(gpu_device->execute(std::span(&twice, 1)), std::runtime_error);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(row.values() == std::vector<float>{1, 2});
}
