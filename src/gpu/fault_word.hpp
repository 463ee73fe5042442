// How a device reports a request that it could not serve, or a row out of range, without a wait.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu/memory.hpp"

namespace gossamer::gpu {

/// A word of host memory that every GPU of a device can write: 0, or the tag of the first request
/// that reported a fault in it (RangeCheckRequest, ScatterAddRequest). Not movable. The device
/// outlives it, and it outlives the requests that name it.
class FaultWord {
 public:
  /// Throws std::bad_alloc if memory is short.
  explicit FaultWord(Memory& device)
      : device_(device), word_(static_cast<std::uint64_t*>(device.allocate_host(sizeof *word_))) {
    *word_ = 0;
  }
  FaultWord(const FaultWord&) = delete;
  FaultWord& operator=(const FaultWord&) = delete;
  ~FaultWord() { device_.release_host(word_); }

  /// The address that requests take.
  std::uint64_t* word() const { return word_; }
  /// The reported tag, or 0 if none has been reported by now. Complete if the thread that made the
  /// requests has called Memory::finish() since. Thread: any.
  std::uint64_t tag() const { return std::atomic_ref(*word_).load(std::memory_order_acquire); }

 private:
  Memory& device_;
  std::uint64_t* word_;
};

}  // namespace gossamer::gpu
