#include "gpu/cuda/judging.hpp"

#include "gpu/cuda/chunks.hpp"
#include "gpu/cuda/conversion.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// NaN is within nothing.
__device__ __forceinline__ bool is_within(float value, float largest) {
  return fabsf(value) <= largest;
}

__global__ void __launch_bounds__(kThreads)
    judge_kernel(const RangeCheckRequest* requests, unsigned count) {
  __shared__ bool sound;
  const RangeCheckRequest r = requests[blockIdx.x % count];
  const std::size_t begin = std::size_t{blockIdx.x / count} * kChunk<float>;
  const std::size_t end = min(r.length, begin + kChunk<float>);
  if (begin >= end) return;
  if (threadIdx.x == 0) sound = true;
  __syncthreads();
  bool mine = true;
  if (reinterpret_cast<std::uintptr_t>(r.row) % sizeof(Pack<float>) == 0 &&
      end - begin == kChunk<float>) {
    Pack<float> packs[kPacks];
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      packs[p] =
          load_pack(r.row + begin +
                    (std::size_t{threadIdx.x} + std::size_t{kThreads} * p) * Pack<float>::kValues);
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
#pragma unroll
      for (int v = 0; v < Pack<float>::kValues; ++v) mine &= is_within(packs[p].v[v], r.largest);
  } else {
    for (std::size_t i = begin + threadIdx.x; i < end; i += kThreads)
      mine &= is_within(r.row[i], r.largest);
  }
  if (!mine) sound = false;  // all who find fault write the same
  __syncthreads();
  if (threadIdx.x == 0 && !sound) tell(r.fault, r.tag);
}

}  // namespace

void check_range(Lane& lane, std::span<const RangeCheckRequest> requests) {
  launch_chunks(lane, judge_kernel, requests, kChunk<float>, kThreads);
}

}  // namespace gossamer::gpu::cuda
