// The local steps of a process's peers, to measure their duration: as in a run, all of them train
// together, on rows of their own that no other process sees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gossip/trainer.hpp"
#include "gpu/device_rows.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// Thread: one call at a time.
class StepTimer {
 public:
  /// Allocates the rows. `hosted`: nodes of this process. The setup outlives this object. Throws
  /// std::bad_alloc.
  StepTimer(const Setup& setup, const std::vector<int>& hosted);

  /// Whether any of the nodes trains.
  bool trains() const { return !requests_.empty(); }
  /// Local steps of each node in a round, at least 1.
  std::uint64_t steps_per_round() const;
  /// The next `steps` local steps of all nodes. Returns when they are done.
  void run(int steps);

 private:
  const Setup& setup_;
  std::vector<gpu::DeviceRows<float>> rows_;  ///< parameters, gradients, and the optimizer's rows
  std::vector<std::vector<std::span<float>>> states_;  ///< by node
  std::vector<gossip::TrainRequest> requests_;         ///< of the nodes that train
};

}  // namespace gossamer::peer
