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

void PooledBuffer::give_back() {
  taken_ = false;
  if (pool_ == nullptr) {
    delete this;
    return;
  }
  --pool_->taken_;
  if (pool_->on_return_) pool_->on_return_();
}

void PooledBuffer::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  const std::size_t rounded = (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  release();
  memory_ = static_cast<std::byte*>(source_.allocate(rounded));
  capacity_ = rounded;
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
    if (!buffer->taken_) continue;
    buffer->pool_ = nullptr;
    static_cast<void>(buffer.release());  // its lease deletes it
  }
}

PooledBuffer* BufferPool::take(std::size_t bytes) {
  for (auto& buffer : buffers_) {
    if (buffer->taken_) continue;
    buffer->reserve(bytes);
    buffer->taken_ = true;
    ++taken_;
    return buffer.get();
  }
  return nullptr;
}

std::size_t BufferPool::allocated_bytes() const {
  std::size_t bytes = 0;
  for (const auto& buffer : buffers_) bytes += buffer->capacity_;
  return bytes;
}

}  // namespace gossamer::net
