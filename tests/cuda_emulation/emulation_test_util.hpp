// What tests of the emulation share: values on the GPU, launches, and code that must stop a
// program.
#pragma once

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <tuple>
#include <vector>

#include "cuda_runtime.h"

namespace gossamer::emulation {

/// Whether a child process that calls it ends with a signal or an error.
template <class Function>
bool dies(Function function) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS}) ::signal(signal, SIG_DFL);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(0);
    function();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status != 0;
}

/// Values on the GPU.
template <class Real>
class OnGpu {
 public:
  explicit OnGpu(std::size_t length) : length_(length) {
    CHECK(cudaMalloc(&memory_, length * sizeof(Real)) == cudaSuccess);
  }
  explicit OnGpu(const std::vector<Real>& values) : OnGpu(values.size()) {
    CHECK(cudaMemcpyAsync(memory_, values.data(), length_ * sizeof(Real), cudaMemcpyHostToDevice) ==
          cudaSuccess);
  }
  ~OnGpu() { CHECK(cudaFree(memory_) == cudaSuccess); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  Real* get() { return memory_; }
  std::vector<Real> values() {
    std::vector<Real> back(length_);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaMemcpyAsync(back.data(), memory_, length_ * sizeof(Real), cudaMemcpyDeviceToHost) ==
          cudaSuccess);
    return back;
  }

 private:
  std::size_t length_;
  Real* memory_ = nullptr;
};

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                   Arguments... arguments) {
  std::tuple<Parameters...> copies(arguments...);
  return std::apply(
      [&](auto&... each) {
        void* places[] = {&each...};
        return cudaLaunchKernel(kernel, grid, block, places, 0, stream);
      },
      copies);
}

}  // namespace gossamer::emulation
