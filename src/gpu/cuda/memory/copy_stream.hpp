// Copies between the host and a GPU that run beside the arithmetic.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/cuda/stream_context.hpp"
#include "gpu/memory.hpp"

namespace gossamer::gpu::cuda {

/// Copies of one direction, in order, on a stream of their own. Thread: any.
///
/// A thread waits for the end of each copy. CUDA could call a function itself (cudaLaunchHostFunc),
/// but does not after an error, and the copy would never be over.
class CopyStream {
 public:
  /// Of the current GPU, whose index among CUDA's this is.
  explicit CopyStream(int gpu) : gpu_(gpu) {}
  /// Waits for the copies.
  ~CopyStream();
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  /// Starts a copy when the earlier work of `context`'s stream is done, and calls `done` from
  /// another thread after it. Throws as GOSSAMER_CUDA, and then does not call it.
  void begin(StreamContext& context, void* to, const void* from, std::size_t bytes,
             cudaMemcpyKind kind, CopyDone done);

 private:
  struct Copy {
    Event over;
    CopyDone done;
  };

  Event take_event();
  void report();
  Status wait_for(const Event& over) const;

  const int gpu_;
  Stream stream_ = make_stream(Urgency::urgent);
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Copy> copies_;
  std::vector<Event> unused_;
  bool ends_ = false;
  std::thread reporter_;  ///< since the first copy
};

}  // namespace gossamer::gpu::cuda
