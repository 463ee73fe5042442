// The baseline of row operations: a copy on the GPU by the CUDA runtime.
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "gpu_bench.hpp"

namespace gossamer::bench {
namespace {

void require(cudaError_t status, const char* call) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}

}  // namespace

RawCopy::RawCopy() {
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_ = stream;
}

RawCopy::~RawCopy() { cudaStreamDestroy(static_cast<cudaStream_t>(stream_)); }

void RawCopy::copy(void* to, const void* from, std::size_t bytes) {
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                          static_cast<cudaStream_t>(stream_)),
          "cudaMemcpyAsync");
}

void RawCopy::finish() {
  require(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), "cudaStreamSynchronize");
}

}  // namespace gossamer::bench
