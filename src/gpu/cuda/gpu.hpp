// One GPU: its memory and its streams.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "gpu/cuda/blas/blas.hpp"
#include "gpu/cuda/cuda.hpp"
#include "gpu/cuda/memory/copy_stream.hpp"
#include "gpu/cuda/stream_context.hpp"

namespace gossamer::gpu::cuda {

/// Each calling thread has a stream context of its own, made at its first call. Thread: any. Errors
/// of CUDA throw std::runtime_error; short memory throws std::bad_alloc. gpu/memory.hpp has the
/// contracts of the functions that have no comment here.
class Gpu {
 public:
  /// The GPU must exist and be usable (Discovery); `blas` outlives it. Throws as above.
  Gpu(GpuInfo info, const BlasFunctions& blas);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuInfo& info() const { return info_; }
  /// The calling thread's context, with this GPU current.
  StreamContext& stream_context();
  /// As Device::give_way(). Before the thread has a context.
  void give_way();
  /// Largest workspace of one stream's training, in bytes.
  std::size_t most_workspace() const;

  /// Lets kernels of this GPU access the memory of `other`, until the program ends.
  void enable_access_to(const Gpu& other) const;
  /// An event of this GPU that occurs when the calling thread's earlier work on it is done. Valid
  /// until the thread's next call of this GPU.
  cudaEvent_t record_event();
  /// The calling thread's later work on this GPU waits for `event`, which may be another GPU's.
  void wait_for(cudaEvent_t event);

  void* allocate(std::size_t bytes);
  void release(void* memory) noexcept;
  void upload(void* device, const void* host, std::size_t bytes);
  void download(void* host, const void* device, std::size_t bytes);
  MemoryInfo memory_info() const;
  void* allocate_host(std::size_t bytes) const;
  void release_host(void* memory) const noexcept;
  void begin_download(void* host, const void* device, std::size_t bytes, CopyDone done);
  void begin_upload(void* device, const void* host, std::size_t bytes, CopyDone done);

 private:
  void make_current() const { GOSSAMER_CUDA(cudaSetDevice, info_.index); }

  GpuInfo info_;
  const BlasFunctions& blas_;
  std::mutex capturing_;  // StreamContext::capturing
  std::mutex mutex_;      // guards contexts_
  std::map<std::thread::id, std::unique_ptr<StreamContext>> contexts_;
  std::unique_ptr<CopyStream> downloads_, uploads_;
};

}  // namespace gossamer::gpu::cuda
