// The device that a process computes on, as local.device asks for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/device.hpp"
#include "peer/config/config.hpp"

namespace gossamer::peer {

/// The rank of a process among the processes of its machine, which share the machine's GPUs, and
/// what it hosts.
struct LocalRank {
  int rank = 0;                  ///< from 0
  int processes = 1;             ///< processes on this machine; 0: unknown
  bool of_launcher = false;      ///< `rank` is what a launcher says, and not a guess by the ids
  std::vector<int> hosted = {};  ///< nodes of this process, ascending, which uses at most one GPU
                                 ///< for each; empty: all nodes, and no limit
};

struct DeviceChoice {
  std::unique_ptr<gpu::Device> device;
  std::string note;  ///< a message to print if the choice may be unexpected; else empty
};

/// `auto`: the GPUs of this process, or the CPU and a note with the reason if no GPU is usable.
/// `cuda`: the GPUs of this process; `cuda:N`: that GPU; an error (invalid) says why that is not
/// possible. The GPUs of a process are gpus_of_process() of the usable ones; if these cannot access
/// each other's memory, the device is the first of them, and a note says so.
Result<DeviceChoice> choose_device(const LocalOptions& local, const LocalRank& local_rank);

/// The GPUs of a process, out of `gpus`, which is not empty. With fewer processes than GPUs, each
/// process has a contiguous share, as even as possible. Otherwise, and if the number of processes
/// is unknown, each has one: number `rank` modulo the number of GPUs.
std::vector<int> gpus_of_process(const LocalRank& local_rank, const std::vector<int>& gpus);

/// Checks that local.device is auto, cpu, cuda or cuda:N.
Status check_device_name(const std::string& name);

}  // namespace gossamer::peer
