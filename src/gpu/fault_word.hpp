// Where a device tells that it could not serve a request, or found fault with a row, so that nobody
// need wait to ask.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu/device.hpp"

namespace gossamer::gpu {

/// A word of host memory that every GPU of a device can write: 0, or the tag of the first request
/// that named it and was not served, or of the first row with a fault. Not movable. The device
/// outlives it, and it outlives the requests that name it.
class FaultWord {
 public:
  /// Throws std::bad_alloc.
  explicit FaultWord(Memory& device)
      : device_(device), word_(static_cast<std::uint64_t*>(device.allocate_host(sizeof *word_))) {
    *word_ = 0;
  }
  FaultWord(const FaultWord&) = delete;
  FaultWord& operator=(const FaultWord&) = delete;
  ~FaultWord() { device_.release_host(word_); }

  /// For requests.
  std::uint64_t* word() const { return word_; }
  /// What has been told by now: all of it where the thread that asked has called Memory::finish
  /// since. Any thread.
  std::uint64_t tag() const { return std::atomic_ref(*word_).load(std::memory_order_acquire); }

 private:
  Memory& device_;
  std::uint64_t* word_;
};

}  // namespace gossamer::gpu
