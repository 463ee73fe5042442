#include "peer/setup/device_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <thread>

#include "gpu/cpu_device.hpp"
#include "gpu/cuda/cuda.hpp"
#include "gpu/gpu_names.hpp"

namespace gossamer::peer {
namespace {

constexpr std::string_view kNumbered = "cuda:";

/// The N of "cuda:N".
std::optional<int> gpu_number(std::string_view name) {
  if (!name.starts_with(kNumbered)) return std::nullopt;
  name.remove_prefix(kNumbered.size());
  int number = 0;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (fault != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

std::unique_ptr<gpu::Device> cpu(const LocalOptions& local) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::make_unique<gpu::CpuDevice>(local.threads > 0 ? local.threads : cores);
}

gpu::cuda::MatmulPrecision precision_of(const std::string& name) {
  return name == "tf32"   ? gpu::cuda::MatmulPrecision::tf32
         : name == "bf16" ? gpu::cuda::MatmulPrecision::bf16
                          : gpu::cuda::MatmulPrecision::float32;
}

/// The GPUs for which kernels were compiled.
std::vector<int> usable(const gpu::cuda::Discovery& discovery) {
  std::vector<int> gpus;
  for (const gpu::cuda::GpuInfo& gpu : discovery.gpus)
    if (gpu.usable) gpus.push_back(gpu.index);
  return gpus;
}

bool can_access_each_other(const gpu::cuda::Discovery& discovery, const std::vector<int>& gpus) {
  for (const int gpu : gpus) {
    const std::vector<int>& reached = discovery.gpus[static_cast<std::size_t>(gpu)].reaches;
    for (const int other : gpus)
      if (other != gpu && std::ranges::find(reached, other) == reached.end()) return false;
  }
  return true;
}

}  // namespace

Status check_device_name(const std::string& name) {
  if (name == "auto" || name == "cpu" || name == "cuda" || gpu_number(name)) return {};
  return invalid_error(
      fmt::format("local.device: '{}' is not one of auto, cpu, cuda, cuda:0, cuda:1, …", name));
}

std::vector<int> gpus_of_process(const LocalRank& local_rank, const std::vector<int>& gpus) {
  const auto count = static_cast<int>(gpus.size());
  const int processes = local_rank.processes;
  if (processes < 1 || processes >= count)
    return {gpus[static_cast<std::size_t>(local_rank.rank % count)]};
  const int rank = local_rank.rank % processes;
  const int first = rank * count / processes, share = (rank + 1) * count / processes - first;
  const int nodes = static_cast<int>(local_rank.hosted.size());
  const int used = nodes > 0 ? std::min(nodes, share) : share;
  return {gpus.begin() + first, gpus.begin() + first + used};
}

Result<DeviceChoice> choose_device(const LocalOptions& local, const LocalRank& local_rank) {
  GOSSAMER_TRY_STATUS(check_device_name(local.device));
  DeviceChoice choice;
  const gpu::cuda::MatmulPrecision precision = precision_of(local.matmul_precision);
  if (local.device == "cpu") {
    if (precision != gpu::cuda::MatmulPrecision::float32)
      return invalid_error(
          fmt::format("local.matmul_precision: the CPU computes in float32, and not in {}; set "
                      "local.device = cuda (or auto), or leave it out",
                      local.matmul_precision));
    choice.device = cpu(local);
    return choice;
  }
  const gpu::cuda::Discovery discovery = gpu::cuda::discover_gpus();
  const int gpus = static_cast<int>(discovery.gpus.size());
  if (!discovery.problem.empty() || gpus == 0) {
    const std::string reason = discovery.problem.empty() ? "no GPU was found" : discovery.problem;
    if (local.device != "auto")
      return invalid_error(
          fmt::format("local.device: '{}' is not available: {}; use cpu, or see gossamer doctor",
                      local.device, reason));
    choice.device = cpu(local);
    choice.note = fmt::format("local.device = auto: {}; using the CPU", reason);
    return choice;
  }
  const std::optional<int> gpu = gpu_number(local.device);
  if (gpu && *gpu >= gpus)
    return invalid_error(
        fmt::format("local.device: '{}' is not available: there {} here ({})", local.device,
                    gpus == 1 ? "is one GPU" : fmt::format("are {} GPUs", gpus),
                    gpus == 1 ? "cuda:0" : fmt::format("cuda:0 to cuda:{}", gpus - 1)));
  std::vector<int> chosen =
      gpu ? std::vector{*gpu} : gpus_of_process(local_rank, usable(discovery));
  if (!can_access_each_other(discovery, chosen)) {
    choice.note = fmt::format(
        "local.device = {}: {} cannot access each other's memory; using only cuda:{}; start one "
        "process for each GPU to use all of them",
        local.device, gpu::gpu_names(chosen), chosen.front());
    chosen.resize(1);
  }
  GOSSAMER_TRY(choice.device,
               gpu::cuda::make_cuda_device({.gpus = chosen, .matmul_precision = precision}));
  return choice;
}

}  // namespace gossamer::peer
