// A neighbour's row that has arrived whole.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "gossip/link.hpp"
#include "gpu/device_rows.hpp"

namespace gossamer::gossip {

/// A buffer for a row, on one GPU of the device, and the round of the row in it.
struct BufferedRow {
  BufferedRow(gpu::Memory& memory, int gpu_index, std::size_t length)
      : row(gpu::DeviceRows<float>::on_gpu(memory, gpu_index, 1, length)) {}
  std::span<float> values() const { return row.row(0); }
  Round round = 0;
  gpu::DeviceRows<float> row;
};

/// The row of a neighbour. Its values do not change while `held` is held.
struct NeighbourRow {
  int from = 0;
  Round round = 0;
  Round present_since = 0;  ///< round since which the neighbour was present when the row arrived;
                            ///< 0: from the start
  std::span<const float> values;  ///< device memory
  std::shared_ptr<const BufferedRow> held;
};

}  // namespace gossamer::gossip
