// Copies between the host and the GPU that run beside the arithmetic.
#pragma once

#include <functional>
#include <mutex>

#include "gpu/cuda/lane.hpp"

namespace gossamer::gpu::cuda {

/// Copies of one direction, in order, on a stream of their own. Any thread; must outlive its
/// copies.
class CopyStream {
 public:
  ~CopyStream() { static_cast<void>(cudaStreamSynchronize(stream_.get())); }

  /// Begins when all that was asked of `lane` is done; then calls `done` from a thread of CUDA's.
  void begin(Lane& lane, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
             std::function<void()> done);

 private:
  std::mutex mutex_;
  Stream stream_ = make_stream();
};

}  // namespace gossamer::gpu::cuda
