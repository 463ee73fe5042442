// Discovers driver, GPUs and cuBLAS, and explains why none can be used.
#include <fmt/format.h>

#include <algorithm>

#include "gpu/cuda/blas/blas.hpp"
#include "gpu/cuda/discovery.hpp"
#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// Lowest compute capability that the kernels are compiled for.
constexpr int kLeastMajor = 8;

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

/// Counts the GPUs. Returns why there are none; empty if there are some.
std::string count_gpus(const Discovery& discovery, int& count) {
  count = 0;
  if (discovery.driver_version == 0) return "no NVIDIA driver on this machine";
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return "";
  static_cast<void>(cudaGetLastError());
  count = 0;
  if (error == cudaErrorInsufficientDriver)
    return fmt::format("the NVIDIA driver is too old: it supports CUDA {}, this program needs {}",
                       version(discovery.driver_version), version(discovery.runtime_version));
  if (error == cudaSuccess || error == cudaErrorNoDevice)
    return "no NVIDIA GPU on this machine, or none visible";
  return fmt::format("the GPUs cannot be queried: {} ({})", cudaGetErrorString(error),
                     cudaGetErrorName(error));
}

/// The other GPUs, of `count`, whose memory kernels of `gpu` can access.
std::vector<int> reached_from(int gpu, int count) {
  std::vector<int> others;
  for (int other = 0; other < count; ++other) {
    int can = 0;
    if (other == gpu) continue;
    if (cudaDeviceCanAccessPeer(&can, gpu, other) != cudaSuccess)
      static_cast<void>(cudaGetLastError());
    else if (can != 0) others.push_back(other);
  }
  return others;
}

GpuInfo gpu_info(int gpu) {
  GpuInfo info;
  info.index = gpu;
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, gpu) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return info;
  }
  info.name = properties.name;
  info.compute_major = properties.major;
  info.compute_minor = properties.minor;
  info.memory_total = properties.totalGlobalMem;
  info.multiprocessors = properties.multiProcessorCount;
  info.usable = properties.major >= kLeastMajor;
  return info;
}

/// Queries free memory. Starts CUDA on the GPU, which takes some of its memory.
void query_memory(GpuInfo& info) {
  int before = 0;
  const bool known = cudaGetDevice(&before) == cudaSuccess;
  if (cudaSetDevice(info.index) != cudaSuccess ||
      cudaMemGetInfo(&info.memory_free, &info.memory_total) != cudaSuccess)
    static_cast<void>(cudaGetLastError());
  if (known) static_cast<void>(cudaSetDevice(before));
}

}  // namespace

Discovery discover_gpus() {
  Discovery discovery;
  discovery.built = true;
  static_cast<void>(cudaDriverGetVersion(&discovery.driver_version));
  static_cast<void>(cudaRuntimeGetVersion(&discovery.runtime_version));
  int count = 0;
  discovery.problem = count_gpus(discovery, count);
  bool usable = false;
  for (int gpu = 0; gpu < count; ++gpu) {
    discovery.gpus.push_back(gpu_info(gpu));
    discovery.gpus.back().reaches = reached_from(gpu, count);
    usable = usable || discovery.gpus.back().usable;
  }
  if (count > 0 && !usable)
    discovery.problem = fmt::format(
        "{} has compute capability {}.{}, this program needs at least {}.0", discovery.gpus[0].name,
        discovery.gpus[0].compute_major, discovery.gpus[0].compute_minor, kLeastMajor);
  const auto blas = load_blas();
  if (blas.ok()) discovery.blas = blas->library;
  else if (discovery.problem.empty()) discovery.problem = blas.error().message;
  return discovery;
}

Discovery discover_gpus_with_memory() {
  Discovery discovery = discover_gpus();
  for (GpuInfo& gpu : discovery.gpus) query_memory(gpu);
  return discovery;
}

Status check_gpu(const Discovery& discovery, int gpu) {
  if (!discovery.problem.empty()) return invalid_error(discovery.problem);
  const int count = static_cast<int>(discovery.gpus.size());
  if (gpu < 0 || gpu >= count)
    return invalid_error(
        fmt::format("there is no GPU {}: this machine has {}", gpu,
                    count == 1 ? "GPU 0 only" : fmt::format("GPUs 0 to {}", count - 1)));
  const GpuInfo& info = discovery.gpus[static_cast<std::size_t>(gpu)];
  if (!info.usable)
    return invalid_error(
        fmt::format("GPU {} ({}) has compute capability {}.{}, this program needs at least {}.0",
                    gpu, info.name, info.compute_major, info.compute_minor, kLeastMajor));
  return {};
}

Status check_peer_access(const std::vector<GpuInfo>& gpus) {
  for (const GpuInfo& gpu : gpus)
    for (const GpuInfo& other : gpus)
      if (&other != &gpu && std::ranges::find(gpu.reaches, other.index) == gpu.reaches.end())
        return invalid_error(
            fmt::format("cuda:{} cannot reach the memory of cuda:{} (no peer access "
                        "between them), so one process "
                        "cannot use both: start one for each",
                        gpu.index, other.index));
  return {};
}

}  // namespace gossamer::gpu::cuda
