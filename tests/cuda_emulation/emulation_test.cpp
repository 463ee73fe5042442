// The emulation itself: barriers, memory, streams and captures behave as on a GPU, and
// the emulation finds the mistakes that it must find.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "tests/cuda_emulation/control.hpp"
#include "tests/cuda_emulation/emulation_test_util.hpp"

using namespace gossamer::emulation;

namespace {

constexpr int kThreads = 64;

/// Sums of a block's numbers, by a tree; threads past the length return early if the caller wants
/// it.
__global__ void block_sums(const float* values, int length, bool leave, float* sums) {
  GOSSAMER_SHARED(float, partial, [kThreads]);
  const int thread = static_cast<int>(threadIdx.x),
            at = static_cast<int>(blockIdx.x) * kThreads + thread;
  if (thread == 0)
    for (int i = 0; i < kThreads; ++i) partial[i] = 0;
  __syncthreads();
  if (leave && at >= length) return;
  partial[thread] = at < length ? values[at] : 0;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) partial[thread] += partial[thread + half];
  }
  if (thread == 0) sums[blockIdx.x] = partial[0];
}

/// Each thread reads its neighbour's number, with or without a barrier before.
__global__ void rotate(int* values, bool barrier) {
  GOSSAMER_SHARED(int, shared, [kThreads]);
  shared[threadIdx.x] = values[threadIdx.x];
  if (barrier) __syncthreads();
  values[threadIdx.x] = shared[(threadIdx.x + 1) % kThreads];
}

__global__ void where(uint4* places) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  places[block * blockDim.x * blockDim.y * blockDim.z + thread] = make_uint4(
      blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
}

__global__ void write_at(float* memory, long place) { memory[place] = 1; }
__global__ void increment(int* value) { ++*value; }

std::vector<float> counting(std::size_t length) {
  std::vector<float> values(length);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

}  // namespace

TEST_CASE(
    "emulation: threads of a block meet at barriers, in every order, ended ones not waited for") {
  for (const Order order : {Order::ascending, Order::descending, Order::shuffled}) {
    const With with({.order = order});
    OnGpu<float> values(counting(150)), sums(3);
    for (const bool leave : {false, true}) {
      CHECK(launch(&block_sums, 3, kThreads, nullptr, values.get(), 150, leave, sums.get()) ==
            cudaSuccess);
      CHECK(sums.values() == std::vector<float>{64 * 65 / 2, 128 * 129 / 2 - 64 * 65 / 2,
                                                150 * 151 / 2 - 128 * 129 / 2});
    }
  }
}

TEST_CASE("emulation: every thread of a grid runs once and knows its place") {
  OnGpu<uint4> places(2 * 3 * 2 * 24);
  CHECK(launch(&where, dim3(2, 3, 2), dim3(4, 3, 2), nullptr, places.get()) == cudaSuccess);
  const auto all = places.values();
  for (unsigned i = 0; i < all.size(); ++i) {
    const unsigned block = i / 24, thread = i % 24;
    CHECK(all[i].x == block % 2 + 10 * (block / 2 % 3) + 100 * (block / 6));
    CHECK(all[i].y + 4 * all[i].z + 12 * all[i].w == thread);
  }
}

TEST_CASE("emulation: a missing barrier shows in some order") {
  int wrong = 0, first = 0;
  for (const Order order : {Order::ascending, Order::descending, Order::shuffled})
    for (const bool barrier : {true, false}) {
      first += 1000;  // values that an earlier run left in shared memory must differ
      std::vector<int> numbers(kThreads), rotated(kThreads);
      std::iota(numbers.begin(), numbers.end(), first);
      std::rotate_copy(numbers.begin(), numbers.begin() + 1, numbers.end(), rotated.begin());
      const With with({.order = order});
      OnGpu<int> values(numbers);
      CHECK(launch(&rotate, 1, kThreads, nullptr, values.get(), barrier) == cudaSuccess);
      if (barrier) CHECK(values.values() == rotated);
      else wrong += values.values() != rotated;
    }
  CHECK(wrong == 3);
}

TEST_CASE("emulation: GPU memory is out of the host's reach, and NaN before the first write") {
  OnGpu<float> memory(3);
  for (const float value : memory.values()) CHECK(std::isnan(value));
  CHECK(dies([&] { static_cast<volatile float*>(memory.get())[0] = 1; }));
  CHECK(dies([&] { (void)static_cast<volatile float*>(memory.get())[0]; }));
}

TEST_CASE("emulation: writing outside a block of memory stops the program") {
  for (const long place : {-1L, 5L})
    CHECK(dies([&] {
      OnGpu<float> memory(5);
      launch(&write_at, 1, 1, nullptr, memory.get(), place);
    }));
  CHECK_FALSE(dies([] {
    OnGpu<float> memory(5);
    launch(&write_at, 1, 1, nullptr, memory.get(), 4);
  }));
}

TEST_CASE("emulation: a kernel reaches the memory of another GPU only where it may") {
  const With two({.gpus = 2});
  CHECK(cudaSetDevice(1) == cudaSuccess);
  OnGpu<int> there(std::vector<int>{5});
  CHECK(gpu_of(there.get()) == 1);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  cudaStream_t here = nullptr;
  CHECK(cudaStreamCreateWithFlags(&here, cudaStreamNonBlocking) == cudaSuccess);
  const auto touch = [&] { return launch(&increment, 1, 1, here, there.get()); };
  static_cast<void>(cudaDeviceDisablePeerAccess(1));
  CHECK(dies(touch));
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(touch() == cudaSuccess);
  CHECK(there.values() == std::vector<int>{6});
  int can = 0;
  CHECK(cudaDeviceCanAccessPeer(&can, 1, 0) == cudaSuccess);
  CHECK(can == 1);
  {
    const With none({.gpus = 2, .peer_access = false});
    CHECK(cudaDeviceCanAccessPeer(&can, 1, 0) == cudaSuccess);
    CHECK(can == 0);
    CHECK(dies(touch));
  }
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaSuccess);
  CHECK(dies(touch));
  CHECK(cudaStreamDestroy(here) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("emulation: streams and events are of the GPU that was current when they were made") {
  const With two({.gpus = 2});
  OnGpu<int> one(std::vector<int>{0});
  cudaStream_t here = nullptr;
  cudaEvent_t there = nullptr;
  CHECK(cudaStreamCreateWithFlags(&here, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaSetDevice(1) == cudaSuccess);
  CHECK(cudaEventCreateWithFlags(&there, cudaEventDisableTiming) == cudaSuccess);
  CHECK(launch(&increment, 1, 1, here, one.get()) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(there, here) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamWaitEvent(here, there) == cudaSuccess);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(launch(&increment, 1, 1, here, one.get()) == cudaSuccess);
  CHECK(one.values() == std::vector<int>{1});
  CHECK(cudaEventDestroy(there) == cudaSuccess);
  CHECK(cudaStreamDestroy(here) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("emulation: a GPU's limits") {
  OnGpu<int> one(std::vector<int>{0});
  for (const dim3 block : {dim3(1025), dim3(32, 33), dim3(1, 1, 65), dim3(0)})
    CHECK(launch(&increment, 1, block, nullptr, one.get()) == cudaErrorInvalidConfiguration);
  for (const dim3 grid : {dim3(1, 65536), dim3(1, 1, 65536), dim3(0)})
    CHECK(launch(&increment, grid, 1, nullptr, one.get()) == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
  float host[4] = {};
  CHECK(cudaMemcpyAsync(host, one.get(), 8, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(one.get(), host, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(nullptr, host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(one.values() == std::vector<int>{0});
  const With small({.memory_per_gpu = 1 << 20});
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 1 << 20) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&memory, (1 << 20) - 4) == cudaSuccess);
  std::size_t free = 1, total = 0;
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(free == 0);
  CHECK(cudaFree(memory) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("emulation: GPUs, drivers and failures as a test sets them") {
  int count = -1;
  {
    const With none({.gpus = 0});
    CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  }
  {
    const With old({.driver_version = 12040});
    CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
  }
  const With two({.gpus = 2});
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 2);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  fail("cudaGetDevice", cudaErrorUnknown, 1);
  CHECK(cudaGetDevice(&count) == cudaSuccess);
  CHECK(cudaGetDevice(&count) == cudaErrorUnknown);
  CHECK(cudaGetDevice(&count) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("emulation: a graph does what was captured, with the arguments of the capture") {
  for (const bool late : {false, true}) {
    const With with({.late = late});
    OnGpu<int> a(std::vector<int>{0}), b(std::vector<int>{10});
    cudaStream_t stream = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    launch(&increment, 1, 1, stream, a.get());
    launch(&increment, 1, 2, stream, b.get());
    CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    launch(&increment, 1, 1, stream, a.get());
    launch(&increment, 1, 2, stream, b.get());
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(executable, stream) == cudaSuccess);
    CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(a.values()[0] == 3);
    CHECK(b.values()[0] == 16);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    cudaGetLastError();
  }
}

TEST_CASE("emulation: a wait for the whole GPU breaks the captures of all threads") {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  cudaError_t waited = cudaSuccess;
  std::thread([&] {
    waited = cudaDeviceSynchronize();
    cudaGetLastError();
  }).join();
  CHECK(waited == cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("emulation: late streams keep their order and wait for events, and nothing else") {
  const With with({.late = true});
  const Holdings before = holdings();
  {
    OnGpu<int> value(std::vector<int>{0});
    int* pinned = nullptr;
    CHECK(cudaMallocHost(&pinned, sizeof(int)) == cudaSuccess);
    cudaStream_t first = nullptr, second = nullptr;
    cudaEvent_t done = nullptr;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming) == cudaSuccess);
    for (int i = 0; i < 100; ++i)
      CHECK(launch(&increment, 1, 1, first, value.get()) == cudaSuccess);
    CHECK(cudaEventRecord(done, first) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(second, done) == cudaSuccess);
    CHECK(cudaMemcpyAsync(pinned, value.get(), sizeof(int), cudaMemcpyDeviceToHost, second) ==
          cudaSuccess);
    CHECK(cudaEventQuery(done) == cudaErrorNotReady);
    int seen = 0;
    struct Look {
      int *from, *to;
    } look{pinned, &seen};
    CHECK(cudaLaunchHostFunc(
              second,
              [](void* at) {
                *static_cast<Look*>(at)->to = *static_cast<Look*>(at)->from;
                int count = 0;
                if (cudaGetDeviceCount(&count) != cudaErrorNotPermitted)
                  *static_cast<Look*>(at)->to = -1;
              },
              &look) == cudaSuccess);
    CHECK(cudaStreamSynchronize(second) == cudaSuccess);
    CHECK(seen == 100);
    CHECK(cudaEventQuery(done) == cudaSuccess);
    CHECK(cudaEventDestroy(done) == cudaSuccess);
    CHECK(cudaStreamDestroy(first) == cudaSuccess);
    CHECK(cudaStreamDestroy(second) == cudaSuccess);
    CHECK(cudaFreeHost(pinned) == cudaSuccess);
  }
  CHECK(holdings() == before);
}
