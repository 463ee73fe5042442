// Copies between the host and a GPU that run beside the arithmetic.
#pragma once

#include <functional>
#include <mutex>

#include "gpu/cuda/stream_context.hpp"

namespace gossamer::gpu::cuda {

/// Copies of one direction, in order, on a stream of their own. Thread: any. Must outlive its
/// copies.
class CopyStream {
 public:
  ~CopyStream() { static_cast<void>(cudaStreamSynchronize(stream_.get())); }

  /// Starts a copy when the earlier work of `context`'s stream is done, and calls `done` from a
  /// thread of CUDA's after it.
  void begin(StreamContext& context, void* to, const void* from, std::size_t bytes,
             cudaMemcpyKind kind, std::function<void()> done);

 private:
  std::mutex mutex_;
  Stream stream_ = make_stream();
};

}  // namespace gossamer::gpu::cuda
