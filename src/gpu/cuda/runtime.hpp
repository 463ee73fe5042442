// CUDA's handles as objects that own them, and the one way to launch a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <tuple>
#include <utility>

#include "gpu/cuda/check.hpp"

namespace gossamer::gpu::cuda {

/// A handle of CUDA's that is released by destroy(handle). Move-only. Errors of the release are
/// ignored.
template <class Handle, auto destroy>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) static_cast<void>(destroy(handle_));
  }
  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExecutable = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

/// Of the GPU's waiting kernels, those of urgent streams run first.
enum class Urgency { urgent, patient };

/// A stream of the current GPU that does not synchronise with CUDA's default stream.
inline Stream make_stream(Urgency urgency) {
  int least = 0, greatest = 0;  // the same number where the GPU has no priorities
  GOSSAMER_CUDA(cudaDeviceGetStreamPriorityRange, &least, &greatest);
  cudaStream_t stream = nullptr;
  GOSSAMER_CUDA(cudaStreamCreateWithPriority, &stream, cudaStreamNonBlocking,
                urgency == Urgency::urgent ? greatest : least);
  return Stream(stream);
}
inline Event make_event() {
  cudaEvent_t event = nullptr;
  GOSSAMER_CUDA(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
  return Event(event);
}

/// Memory of the current GPU with undefined content. Throws std::bad_alloc. Freeing it waits for
/// the GPU.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    void* memory = nullptr;
    if (bytes > 0) GOSSAMER_CUDA(cudaMalloc, &memory, bytes);
    memory_ = Owned<void*, cudaFree>(memory);
  }
  void* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  Owned<void*, cudaFree> memory_;
  std::size_t bytes_ = 0;
};

/// Pinned host memory. Throws std::bad_alloc.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t bytes) : bytes_(bytes) {
    void* memory = nullptr;
    if (bytes > 0) GOSSAMER_CUDA(cudaMallocHost, &memory, bytes);
    memory_ = Owned<void*, cudaFreeHost>(memory);
  }
  void* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  Owned<void*, cudaFreeHost> memory_;
  std::size_t bytes_ = 0;
};

/// Launches `kernel` on `stream`, as kernel<<<grid, block, 0, stream>>>(arguments…). An empty grid
/// launches nothing.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  std::tuple<Parameters...> values(arguments...);
  std::apply(
      [&](auto&... value) {
        void* addresses[] = {static_cast<void*>(&value)...};
        check(cudaLaunchKernel(kernel, grid, block, addresses, 0, stream), "cudaLaunchKernel");
      },
      values);
}

constexpr std::size_t rounded_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}
constexpr std::size_t pieces_of(std::size_t value, std::size_t piece) {
  return (value + piece - 1) / piece;
}

}  // namespace gossamer::gpu::cuda
