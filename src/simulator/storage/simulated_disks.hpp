// The checkpoints of simulated processes: written and read by the program's own code, on disks that
// fail, tear, stop and lose power as a scenario says.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/result.hpp"
#include "base/temporary_folder.hpp"
#include "simulator/storage/storage.hpp"

namespace gossamer::simulator {

/// The folder in which a program's simulations work; it is removed with this object. Thread: any.
class SimulatedDisks {
 public:
  /// In the system's temporary folder. The error (data) names the folder and the reason.
  static Result<std::unique_ptr<SimulatedDisks>> create();
  SimulatedDisks(const SimulatedDisks&) = delete;
  SimulatedDisks& operator=(const SimulatedDisks&) = delete;

  /// What this makes must be destroyed before this object.
  MakeStorage storage();

 private:
  explicit SimulatedDisks(TemporaryFolder folder) : folder_(std::move(folder)) {}
  TemporaryFolder folder_;
  std::atomic<std::uint64_t> runs_{0};
};

}  // namespace gossamer::simulator
