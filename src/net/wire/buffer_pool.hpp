// The buffers that a connection reads chunks into. A fixed number of them, grown to what the chunks
// need: their number times the chunk limit bounds a connection's memory, whatever the other side
// sends.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gossip/lease.hpp"

namespace gossamer::net {

class BufferPool;

/// Where buffers come from: memory at a 64-byte boundary, or std::bad_alloc. Ordinary memory,
/// unless set.
struct BufferMemory {
  std::function<void*(std::size_t bytes)> allocate;
  std::function<void(void*)> release;
  static BufferMemory ordinary();
};

/// Memory for one chunk, at a 64-byte boundary. Its lease's end gives it back to the pool, or frees
/// it if that is gone.
class PooledBuffer final : public gossip::BufferOwner {
 public:
  PooledBuffer(BufferPool& pool, BufferMemory source) : pool_(&pool), source_(std::move(source)) {}
  ~PooledBuffer() override { release(); }
  PooledBuffer(const PooledBuffer&) = delete;
  PooledBuffer& operator=(const PooledBuffer&) = delete;
  std::byte* data() { return memory_; }
  void give_back() override;

 private:
  friend class BufferPool;
  void reserve(std::size_t bytes);
  void release();

  BufferPool* pool_;  ///< null when the pool ended before the lease
  bool taken_ = false;
  BufferMemory source_;
  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Thread: the scheduler's.
class BufferPool {
 public:
  /// `on_return` is called when a buffer comes back.
  BufferPool(std::size_t buffers, std::function<void()> on_return,
             const BufferMemory& source = BufferMemory::ordinary());
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A free buffer that holds at least `bytes`, or null when all are out. Throws std::bad_alloc
  /// when memory is short.
  PooledBuffer* take(std::size_t bytes);
  bool has_free() const { return taken_ < buffers_.size(); }
  /// Memory that the pool holds, in use or not.
  std::size_t allocated_bytes() const;

 private:
  friend class PooledBuffer;
  std::vector<std::unique_ptr<PooledBuffer>> buffers_;
  std::size_t taken_ = 0;
  std::function<void()> on_return_;
};

}  // namespace gossamer::net
