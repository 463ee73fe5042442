// One GPU: its memory, and the streams by which work gets there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "gpu/cuda/blas.hpp"
#include "gpu/cuda/cuda.hpp"
#include "gpu/cuda/lane.hpp"
#include "gpu/cuda/transfers.hpp"

namespace gossamer::gpu::cuda {

/// Each calling thread has a lane of its own, made at its first call. Any thread. Errors of CUDA
/// throw std::runtime_error; memory that is short, std::bad_alloc. What is not told here is told at
/// Memory and Transfers.
class Gpu {
 public:
  /// The GPU is there and fit (discovery); `blas` outlives it. Throws as above.
  Gpu(GpuInfo info, const BlasFunctions& blas);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuInfo& info() const { return info_; }
  /// The calling thread's, with the GPU current.
  Lane& lane();
  /// Workspace of a lane's training at most.
  std::size_t most_workspace() const;

  /// Lets kernels of this GPU touch the memory of `other`, from now to the program's end.
  void reach(const Gpu& other) const;
  /// An event on this GPU: all that the calling thread has asked of it is done. Until the thread's
  /// next call of this GPU.
  cudaEvent_t mark();
  /// What the calling thread asks of this GPU from now on is done after `event`, which may be
  /// another GPU's.
  void wait_for(cudaEvent_t event);

  void* allocate(std::size_t bytes);
  void release(void* memory);
  void upload(void* device, const void* host, std::size_t bytes);
  void download(void* host, const void* device, std::size_t bytes);
  MemoryInfo memory_info() const;
  void* allocate_host(std::size_t bytes) const;
  void release_host(void* memory) const;
  void begin_download(void* host, const void* device, std::size_t bytes,
                      std::function<void()> done);
  void begin_upload(void* device, const void* host, std::size_t bytes, std::function<void()> done);

 private:
  void make_current() const { GOSSAMER_CUDA(cudaSetDevice, info_.index); }

  GpuInfo info_;
  const BlasFunctions& blas_;
  std::mutex capturing_;  // Lane::capturing
  std::mutex mutex_;      // of lanes_
  std::map<std::thread::id, std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<CopyStream> downloads_, uploads_;
};

}  // namespace gossamer::gpu::cuda
