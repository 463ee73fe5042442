// Keyed random numbers: a thread makes the four numbers of one Philox block.
#include <vector>

#include "base/philox.hpp"
#include "gpu/cuda/conversion.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kThreads = 256;
/// Numbers of a block of threads; one Philox block more than that where `first` lies within one.
constexpr std::size_t kChunk = std::size_t{kThreads} * 4;

template <class Value>
struct Convert;
template <>
struct Convert<std::uint32_t> {
  __device__ static std::uint32_t from(std::uint32_t bits) { return bits; }
};
template <>
struct Convert<float> {
  __device__ static float from(std::uint32_t bits) { return unit_float(bits); }
};

/// `length` of the task counts from the Philox block in which `first` lies.
template <class Value>
__global__ void __launch_bounds__(kThreads)
    random_kernel(const RandomRequest<Value>* requests, unsigned count) {
  const RandomRequest<Value> r = requests[blockIdx.x % count];
  const std::uint64_t begin = r.first / 4 * 4, end = begin + r.length;
  const std::uint64_t place =
      begin + std::uint64_t{blockIdx.x / count} * kChunk + std::uint64_t{threadIdx.x} * 4;
  if (place >= end) return;
  const auto numbers =
      RandomKey(r.seed, r.peer, r.purpose, r.step).block(static_cast<std::uint32_t>(place / 4));
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (place + i >= r.first && place + i < end)
      r.out[place + i - r.first] = Convert<Value>::from(numbers[i]);
}

template <class Value>
void draw(Lane& lane, std::span<const RandomRequest<Value>> requests) {
  std::vector<RandomRequest<Value>> tasks;
  for (const auto& request : requests)
    if (request.length > 0) {
      tasks.push_back(request);
      tasks.back().length += request.first % 4;
    }
  launch_chunks<RandomRequest<Value>>(lane, random_kernel<Value>, tasks, kChunk, kThreads);
}

}  // namespace

void integers(Lane& lane, std::span<const RandomRequest<std::uint32_t>> requests) {
  draw(lane, requests);
}
void uniforms(Lane& lane, std::span<const RandomRequest<float>> requests) { draw(lane, requests); }

}  // namespace gossamer::gpu::cuda
