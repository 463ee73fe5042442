// The CUDA device of a program that was built without the CUDA toolkit: no GPU can be used.
#include "gpu/cuda/cuda.hpp"

namespace gossamer::gpu::cuda {

Discovery discover_gpus() {
  Discovery discovery;
  discovery.problem = "this build has no CUDA device: it was made without the CUDA toolkit";
  return discovery;
}
Discovery discover_gpus_with_memory() { return discover_gpus(); }

template <class Real>
Result<std::unique_ptr<BasicDevice<Real>>> make_cuda_device(const Options&) {
  return invalid_error(discover_gpus().problem);
}
template Result<std::unique_ptr<BasicDevice<float>>> make_cuda_device(const Options&);

}  // namespace gossamer::gpu::cuda
