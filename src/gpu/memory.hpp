// Memory of a device, and copies between it and the host.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/result.hpp"

namespace gossamer {
class SharedMemory;  // base/shared_memory.hpp
}

namespace gossamer::gpu {

struct MemoryInfo {
  std::size_t free = 0, total = 0;  ///< bytes
};

/// Called when a copy is over: with an error (internal) if the GPU has failed, whose copy then has
/// undefined content.
using CopyDone = std::function<void(const Status&)>;

/// Memory of a device, and of the host for it. A device may consist of several GPUs, each with
/// memory of its own; a GPU index counts them from 0. The CPU counts as one GPU. Thread: any.
class Memory {
 public:
  virtual ~Memory() = default;

  /// Number of GPUs, at least 1.
  virtual int gpu_count() const { return 1; }
  /// The GPU index of an address within memory from allocate().
  virtual int gpu_of(const void* /*memory*/) const { return 0; }
  /// `bytes` of zeros on one GPU, at a 64-byte boundary. Throws std::bad_alloc when memory is
  /// short.
  virtual void* allocate(std::size_t bytes, int gpu_index = 0) = 0;
  /// Frees memory from allocate() after all operations that use it are done. Null is allowed. A GPU
  /// that has failed frees nothing, and says so at the next operation.
  virtual void release(void* memory) noexcept = 0;
  virtual MemoryInfo memory_info(int gpu_index = 0) = 0;
  /// From now on allocate() takes large blocks from memory that other processes of this machine can
  /// read in place. Returns that memory, the same at each call, or null: this device has none, or
  /// the system allows none. It lives as long as the device. Not while another thread allocates.
  virtual SharedMemory* share() { return nullptr; }
  /// Whether the host may read and write device memory, and requests may name host memory.
  virtual bool host_accessible() const = 0;

  /// Host memory from which copies to and from the device are fastest (pinned). Throws
  /// std::bad_alloc when memory is short.
  virtual void* allocate_host(std::size_t bytes) = 0;
  /// Frees memory from allocate_host(). As release().
  virtual void release_host(void* memory) noexcept = 0;

  /// Copies `bytes` to the device, in the order of the calling thread's operations. `host` may
  /// change when the call returns.
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  /// Copies `bytes` to the host, after the calling thread's earlier operations. The copy is
  /// complete when the call returns.
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;

  /// Copies beside the arithmetic: a copy starts when the calling thread's earlier operations are
  /// done, and copies of one direction and one GPU are done in order. `host` lies in memory from
  /// allocate_host() and belongs to the copy until `done` is called: once, unless the call throws.
  /// `done` runs on any thread, perhaps within the call, and must not call the device.
  virtual void begin_upload(void* device, const void* host, std::size_t bytes, CopyDone done) = 0;
  virtual void begin_download(void* host, const void* device, std::size_t bytes, CopyDone done) = 0;

  /// From now on, operations of the calling thread give way to those of other threads where the
  /// device cannot do both. At the thread's first call.
  virtual void give_way() {}
  /// A point in the calling thread's operations, for wait(): after all that it has asked for. Null:
  /// they are done.
  virtual std::shared_ptr<const void> mark() { return nullptr; }
  /// The calling thread's later operations begin when those before `mark`, which is another
  /// thread's, are done. The host does not wait.
  virtual void wait(const std::shared_ptr<const void>& /*mark*/) {}
  /// Waits until every operation that the calling thread has asked for is done.
  virtual void finish() = 0;
};

}  // namespace gossamer::gpu
