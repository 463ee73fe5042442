// The CUDA device from outside. Three libraries implement it, and a program links exactly one of
// them: gossamer_cuda (built with the CUDA toolkit), gossamer_cuda_absent (built without it), and,
// in tests, gossamer_cuda_emulated, in which the same kernels run on the CPU.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

struct GpuInfo {
  int index = 0;  ///< CUDA's: N of cuda:N
  std::string name;
  int compute_major = 0, compute_minor = 0;
  std::size_t memory_free = 0, memory_total = 0;  ///< bytes
  int multiprocessors = 0;
  bool usable = false;       ///< the kernels are compiled for its compute capability
  std::vector<int> reaches;  ///< other GPUs whose memory its kernels can access, ascending
};

/// The CUDA of this program and this machine.
struct Discovery {
  bool built = false;   ///< whether the program has the CUDA device
  std::string problem;  ///< why no GPU can be used, in one line; empty if one can be used
  int driver_version = 0, runtime_version = 0;  ///< as CUDA counts: 13000 is 13.0; 0: none
  std::string blas;                             ///< the cuBLAS library found, and its version
  std::vector<GpuInfo> gpus;
};

/// Does not start CUDA on any GPU, so free memory is left at 0. Never throws or prints. Thread:
/// any.
Discovery discover_gpus();
/// Likewise, with free memory. CUDA is started on every GPU, which takes time and some of its
/// memory.
Discovery discover_gpus_with_memory();

/// What factors of a float32 product are rounded to before they are multiplied, if the GPU has
/// units for it. Sums are in float32.
enum class MatmulPrecision { float32, tf32, bf16 };

struct Options {
  /// CUDA's numbers of the GPUs, different and ascending. A GPU's place in this list is its index
  /// in the device (Memory::gpu_of).
  std::vector<int> gpus = {0};
  /// Of cuBLAS's products: of dense layers, but for those with few outputs, and of Muon. The other
  /// kernels compute in float32.
  MatmulPrecision matmul_precision = MatmulPrecision::float32;
};

/// A device of these GPUs. Errors (invalid): the discovery's problem, a GPU that does not exist, or
/// GPUs that cannot access each other's memory. Real: float or double. Thread: any.
template <class Real = float>
Result<std::unique_ptr<BasicDevice<Real>>> make_cuda_device(const Options& options);

}  // namespace gossamer::gpu::cuda
