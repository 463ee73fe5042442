// How row arithmetic is shared out. A block works on one chunk of one row. Blocks that run together
// work on the same chunk of different rows, so that a row that several peers use is read from
// memory once and then from the cache. All loads of a chunk are under way before the first is used.
// Device code.
#pragma once

#include "gpu/cuda/runtime.hpp"
#include "gpu/cuda/vector.hpp"

namespace gossamer::gpu::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kPacks = 4;  // of a thread
template <class Real>
inline constexpr std::size_t kChunk = std::size_t{kThreads} * kPacks * Pack<Real>::kValues;
/// Outputs of one call beyond this do not stay in the cache until they are read.
inline constexpr std::size_t kStreamBytes = std::size_t{24} << 20;

/// This block's row, and the begin of its chunk.
struct Place {
  unsigned row;
  std::size_t begin;
};
template <class Real>
__device__ __forceinline__ Place place(unsigned rows) {
  return {blockIdx.x % rows, static_cast<std::size_t>(blockIdx.x / rows) * kChunk<Real>};
}

template <class Real>
unsigned blocks_for(std::size_t rows, std::size_t longest) {
  return static_cast<unsigned>(rows * pieces_of(longest, kChunk<Real>));
}

}  // namespace gossamer::gpu::cuda
