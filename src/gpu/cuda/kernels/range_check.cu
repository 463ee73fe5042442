// Range checks of rows: a block checks one chunk of one row.
#include "gpu/cuda/kernels/chunks.hpp"
#include "gpu/cuda/kernels/launch_chunks.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/rows.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// NaN is within no range.
__device__ __forceinline__ bool is_within(float value, float largest) {
  return fabsf(value) <= largest;
}

__global__ void __launch_bounds__(kThreads)
    range_check_kernel(const RangeCheckRequest* requests, unsigned count) {
  GOSSAMER_SHARED(bool, in_range);
  const RangeCheckRequest r = requests[blockIdx.x % count];
  const std::size_t begin = std::size_t{blockIdx.x / count} * kChunk<float>;
  const std::size_t end = min(r.length, begin + kChunk<float>);
  if (begin >= end) return;
  if (threadIdx.x == 0) in_range = true;
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
  if (!mine) in_range = false;  // all threads that write it write the same
  __syncthreads();
  if (threadIdx.x == 0 && !in_range) report_fault(r.fault, r.tag);
}

}  // namespace

void enqueue(StreamContext& context, std::span<const RangeCheckRequest> requests) {
  launch_chunks(context, range_check_kernel, requests, kChunk<float>, kThreads);
}

}  // namespace gossamer::gpu::cuda
