// Which device a process computes on: local.device made real.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "gpu/device.hpp"
#include "peer/config.hpp"

namespace gossamer::peer {

struct DeviceChoice {
  std::unique_ptr<gpu::Device> device;
  std::string note;  ///< one line for people where the choice is not what they might think; else empty
};

/// `auto`: the first card, or the CPU where there is none that can be used, and a note says why. `cuda`, `cuda:N`: that card
/// or an error (invalid) with the reason. `process`: the number by which processes of one machine spread over its cards:
/// `auto` and `cuda` take card process mod cards.
Result<DeviceChoice> choose_device(const LocalOptions& local, int process);

/// Whether local.device has a form that choose_device knows.
Status check_device_name(const std::string& name);

}  // namespace gossamer::peer
