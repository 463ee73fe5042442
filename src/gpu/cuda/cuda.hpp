// The CUDA device from outside. Three libraries implement it, and a program links exactly one of
// them: gossamer_cuda (made with the CUDA toolkit), gossamer_cuda_absent (made without), and, in
// tests, gossamer_cuda_emulated, in which the same kernels run on the CPU.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

struct GpuInfo {
  int index = 0;
  std::string name;
  int compute_major = 0, compute_minor = 0;
  std::size_t memory_free = 0, memory_total = 0;  ///< bytes
  int multiprocessors = 0;
  bool usable = false;       ///< the kernels are compiled for GPUs like this one
  std::vector<int> reaches;  ///< the other GPUs whose memory its kernels can touch, ascending
};

/// What CUDA this program and this machine have.
struct Discovery {
  bool built = false;   ///< whether the program has the CUDA device
  std::string problem;  ///< why no GPU can be used, in one line; empty when there is one
  int driver_version = 0, runtime_version = 0;  ///< as CUDA counts them: 13000 is 13.0; 0: none
  std::string blas;                             ///< the cuBLAS library found, and its version
  std::vector<GpuInfo> gpus;
};

/// Never throws, never prints. Any thread. Starts no GPU: free memory is left at 0.
Discovery discover_gpus();
/// The same with free memory, for which CUDA is started on every GPU: takes time, and some of
/// their memory.
Discovery discover_gpus_with_memory();

struct Options {
  std::vector<int> gpus = {0};  ///< different ones, ascending: a GPU's place in the list is its
                                ///< index in the device (Memory::gpu_of)
};

/// Errors (invalid): the discovery's problem, a GPU that there is not, or GPUs that do not reach
/// each other. Any thread.
Result<std::unique_ptr<Device>> make_cuda_device(const Options& options);

}  // namespace gossamer::gpu::cuda
