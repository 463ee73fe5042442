// The CUDA device of a program that was made without the CUDA toolkit: there is none.
#include "gpu/cuda/cuda.hpp"

namespace gossamer::gpu::cuda {

Discovery discover_gpus() {
  Discovery discovery;
  discovery.problem = "this build has no CUDA device: it was made without the CUDA toolkit";
  return discovery;
}
Discovery discover_gpus_with_memory() { return discover_gpus(); }

Result<std::unique_ptr<Device>> make_cuda_device(const Options&) {
  return Error{ErrorKind::invalid, discover_gpus_with_memory().problem};
}

}  // namespace gossamer::gpu::cuda
