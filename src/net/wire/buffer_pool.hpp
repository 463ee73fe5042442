// The buffers that a session reads chunks into: a fixed number, each grown to the size that the
// chunks need. Their number times the chunk limit bounds the memory of a session, whatever the
// other end sends.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gossip/lease.hpp"

namespace gossamer::net {

class BufferPool;

/// Where buffers come from. `allocate` returns memory at a 64-byte boundary or throws
/// std::bad_alloc.
struct BufferMemory {
  std::function<void*(std::size_t bytes)> allocate;
  std::function<void(void*)> release;
  /// The memory of the heap.
  static BufferMemory ordinary();
};

/// Memory for one chunk, at a 64-byte boundary. The end of its lease returns it to the pool, or
/// frees it if the pool is gone.
class PooledBuffer final : public gossip::BufferOwner {
 public:
  PooledBuffer(BufferPool& pool, BufferMemory source) : pool_(&pool), source_(std::move(source)) {}
  ~PooledBuffer() override { release(); }
  PooledBuffer(const PooledBuffer&) = delete;
  PooledBuffer& operator=(const PooledBuffer&) = delete;

  std::byte* data() { return memory_; }
  std::size_t capacity() const { return capacity_; }
  bool taken() const { return taken_; }
  /// Grows the buffer to `bytes` and takes it out of the pool. Throws std::bad_alloc.
  void take(std::size_t bytes);
  /// The pool is gone: the end of the lease deletes the buffer.
  void orphan() { pool_ = nullptr; }
  void on_lease_end() override;

 private:
  void release();

  BufferPool* pool_;  ///< null when the pool is gone
  bool taken_ = false;
  BufferMemory source_;
  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Thread: the scheduler's.
class BufferPool {
 public:
  /// `on_return` is called when a buffer is returned.
  BufferPool(std::size_t buffers, std::function<void()> on_return,
             const BufferMemory& source = BufferMemory::ordinary());
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A free buffer that holds at least `bytes`, or null if all are taken. Throws std::bad_alloc.
  PooledBuffer* take(std::size_t bytes);
  /// A buffer has been returned. Called by the buffer.
  void on_return() const {
    if (on_return_) on_return_();
  }
  /// Memory that the pool holds, taken or not.
  std::size_t allocated_bytes() const;

 private:
  std::vector<std::unique_ptr<PooledBuffer>> buffers_;
  std::function<void()> on_return_;
};

}  // namespace gossamer::net
