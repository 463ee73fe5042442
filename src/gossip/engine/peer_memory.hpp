// The rows of a process's nodes in device memory: the algorithm's rows with their back halves, the
// gradients, and the optimizer's rows.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"
#include "gpu/device_rows.hpp"

namespace gossamer::gossip {

/// What a node's rows take.
struct MemoryLayout {
  std::size_t length = 0;      ///< d, the number of parameters
  bool gradient = true;        ///< a row for gradients: of algorithms that train
  std::size_t state_rows = 0;  ///< rows of d values that the optimizer keeps from step to step
  std::size_t row_offset = 0;  ///< values by which rows are misaligned, for tests
};

/// Rows stay where they are for the object's life. The device outlives it. Thread: none of its own.
class PeerMemory {
 public:
  /// Writes the starting parameters of node `node`, in host memory.
  using Initialise = std::function<void(int node, std::span<float> parameters)>;

  /// Allocates the rows of `nodes` and gives them their starting values (RowSpec::initial,
  /// RowSpec::extra_initial). Throws std::bad_alloc when the device has too little memory.
  PeerMemory(gpu::Memory& device, const std::vector<RowSpec>& rows, const MemoryLayout& layout,
             const std::vector<int>& nodes, const Initialise& initialise);

  /// The memory of the node at `index` of `nodes`; the number of its counters is left at 0.
  NodeMemory of(std::size_t index) const;
  /// The GPU index of the rows of the node at `index` (Memory::gpu_of).
  int gpu_of(std::size_t index) const;

 private:
  void set_initial_values(const std::vector<RowSpec>& rows, std::size_t length,
                          const std::vector<int>& nodes, const Initialise& initialise);

  gpu::Memory& device_;
  std::vector<gpu::DeviceRows<float>> fronts_, backs_;  ///< by row of the algorithm
  gpu::DeviceRows<float> gradients_;
  std::vector<gpu::DeviceRows<float>> states_;  ///< by row of the optimizer
};

}  // namespace gossamer::gossip
