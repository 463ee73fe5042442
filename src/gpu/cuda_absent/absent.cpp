// The CUDA device of a program that was made without the CUDA toolkit: there is none.
#include "gpu/cuda/cuda.hpp"

namespace gossamer::gpu::cuda {

Survey survey_cards() {
  Survey survey;
  survey.problem = "this build has no CUDA device: it was made without the CUDA toolkit";
  return survey;
}
Survey survey() { return survey_cards(); }

Result<std::unique_ptr<Device>> make_cuda_device(const Options&) {
  return Error{ErrorKind::invalid, survey().problem};
}

}  // namespace gossamer::gpu::cuda
