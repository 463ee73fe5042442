// Which device a process computes on: local.device made real.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/device.hpp"
#include "peer/config/config.hpp"

namespace gossamer::peer {

/// A process among those of its machine, by which they share its GPUs.
struct ProcessPlace {
  int process = 0;    ///< its number among them
  int processes = 1;  ///< how many there are; 0: not known
  int nodes = 0;      ///< that it hosts: it takes no more GPUs than that; 0: no matter
};

struct DeviceChoice {
  std::unique_ptr<gpu::Device> device;
  std::string
      note;  ///< one line for people where the choice is not what they might think; else empty
};

/// `auto`: this process's GPUs, or the CPU where there is none that can be used, and a note says
/// why. `cuda`, `cuda:N`: this process's GPUs, that GPU, or an error (invalid) with the reason. A
/// process's GPUs are gpus_of_process() of those that can be used; where these do not reach each
/// other's memory, the first of them alone, and a note says so.
Result<DeviceChoice> choose_device(const LocalOptions& local, const ProcessPlace& place);

/// With fewer processes than GPUs, each has its contiguous share of them, as even as may be. Else,
/// and where it is not known how many processes there are, each has one: GPU process mod GPUs.
std::vector<int> gpus_of_process(const ProcessPlace& place, const std::vector<int>& gpus);

/// Whether local.device has a form that choose_device knows.
Status check_device_name(const std::string& name);

}  // namespace gossamer::peer
