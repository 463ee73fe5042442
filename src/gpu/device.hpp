// Where arithmetic runs. Every operation has a leading peer dimension: it takes the requests of all peers that are ready
// together, so that a GPU may serve them with one kernel. On the CPU a peer's bits never depend on who shares its batch,
// on the thread count, on alignment or on how a row was cut into pieces.
#pragma once

#include <cstddef>
#include <span>

namespace gossamer::gpu {

/// One neighbour's row (or the piece of it in question) and its weight in W.
struct MixSource {
  const float* row = nullptr;
  float weight = 0;
};

/// out ← x + Σ_j weight_j · (row_j − x), added in the order of `sources`; element-wise, so rows may be mixed in pieces.
/// out overlaps none of the inputs.
struct MixRequest {
  const float* x = nullptr;
  float* out = nullptr;
  std::span<const MixSource> sources;
  std::size_t length = 0;  ///< values
};

}  // namespace gossamer::gpu
