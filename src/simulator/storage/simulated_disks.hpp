// The checkpoints of simulated processes: written and read by the program's own code, on disks that
// fail, tear, stop and lose power as a scenario says.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "simulator/storage/storage.hpp"

namespace gossamer::simulator {

/// The folder in which a program's simulations work; it is removed with this object. Thread: any.
class SimulatedDisks {
 public:
  /// In the system's temporary folder. The error (data) names the folder and the reason.
  static Result<std::unique_ptr<SimulatedDisks>> create();
  ~SimulatedDisks();
  SimulatedDisks(const SimulatedDisks&) = delete;
  SimulatedDisks& operator=(const SimulatedDisks&) = delete;

  /// What this makes must be destroyed before this object.
  MakeStorage storage();

 private:
  explicit SimulatedDisks(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
  std::atomic<std::uint64_t> runs_{0};
};

}  // namespace gossamer::simulator
