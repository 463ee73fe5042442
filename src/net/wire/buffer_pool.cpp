#include "net/wire/buffer_pool.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "base/rows.hpp"

namespace gossamer::net {

BufferMemory BufferMemory::ordinary() {
  return {[](std::size_t bytes) {
            void* memory = std::aligned_alloc(kRowAlignment, bytes);
            if (memory == nullptr) throw std::bad_alloc();
            return memory;
          },
          [](void* memory) { std::free(memory); }};
}

void PooledBuffer::take(std::size_t bytes) {
  if (bytes > capacity_) {
    const std::size_t rounded = (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
    release();
    memory_ = static_cast<std::byte*>(source_.allocate(rounded));
    capacity_ = rounded;
  }
  taken_ = true;
}

void PooledBuffer::on_lease_end() {
  taken_ = false;
  if (pool_ != nullptr) pool_->on_return();
  else delete this;
}

void PooledBuffer::release() {
  if (memory_ != nullptr) source_.release(std::exchange(memory_, nullptr));
  capacity_ = 0;
}

BufferPool::BufferPool(std::size_t buffers, std::function<void()> on_return,
                       const BufferMemory& source)
    : on_return_(std::move(on_return)) {
  for (std::size_t i = 0; i < buffers; ++i)
    buffers_.push_back(std::make_unique<PooledBuffer>(*this, source));
}

BufferPool::~BufferPool() {
  for (auto& buffer : buffers_) {
    if (!buffer->taken()) continue;
    buffer->orphan();
    static_cast<void>(buffer.release());  // the end of its lease deletes it
  }
}

PooledBuffer* BufferPool::take(std::size_t bytes) {
  for (auto& buffer : buffers_) {
    if (buffer->taken()) continue;
    buffer->take(bytes);
    return buffer.get();
  }
  return nullptr;
}

std::size_t BufferPool::allocated_bytes() const {
  std::size_t bytes = 0;
  for (const auto& buffer : buffers_) bytes += buffer->capacity();
  return bytes;
}

}  // namespace gossamer::net
