// How blocks share out row arithmetic. A block works on one chunk of one row. Blocks that run
// together work on the same chunk of different rows, so that a row that several peers use is read
// from memory once and then from the cache. All loads of a chunk are in flight before the first is
// used. Device code.
#pragma once

#include "base/check.hpp"
#include "gpu/cuda/kernels/launches.hpp"
#include "gpu/cuda/kernels/vector.hpp"
#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kPacks = 4;  // per thread
template <class Real>
inline constexpr std::size_t kChunk = std::size_t{kThreads} * kPacks * Pack<Real>::kValues;
/// More output bytes of one call do not stay in the cache until they are read.
inline constexpr std::size_t kStreamBytes = std::size_t{24} << 20;

/// A block's row, and the first value of its chunk.
struct ChunkPosition {
  unsigned row;
  std::size_t begin;
};
template <class Real>
__device__ __forceinline__ ChunkPosition chunk_position(unsigned rows) {
  return {blockIdx.x % rows, static_cast<std::size_t>(blockIdx.x / rows) * kChunk<Real>};
}

/// Of rows that fit one launch: see in_launches().
template <class Real>
unsigned blocks_for(std::size_t rows, std::size_t longest) {
  const std::size_t blocks = rows * pieces_of(longest, kChunk<Real>);
  GOSSAMER_CHECK(blocks <= kMostBlocks, "the blocks of a launch fit a grid");
  return static_cast<unsigned>(blocks);
}

}  // namespace gossamer::gpu::cuda
