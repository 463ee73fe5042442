// The memory of the emulated GPUs: a range of addresses for each, which nobody can touch but
// kernels, products and copies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "control.hpp"

namespace gossamer::emulation {

/// A set of GPUs, one bit each.
using Gpus = std::uint32_t;
inline constexpr Gpus kAllGpus = ~Gpus{0};
constexpr Gpus only(int gpu) { return Gpus{1} << gpu; }

/// Any thread.
class Arena {
 public:
  Arena();

  /// Opens the memory of some GPUs to this process while it lives; one at a time, others wait. May
  /// be nested in a thread.
  class Open {
   public:
    explicit Open(Gpus gpus = kAllGpus);
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Gpus gpus_;
  };

  /// Null when GPU `GPU` has fewer than `bytes` of its `limit` left. 256-byte aligned, full of
  /// NaN.
  void* allocate(int gpu, std::size_t bytes, std::size_t limit);
  /// False when no block begins there. Stops the program when something was written past the
  /// block's ends.
  bool release(void* memory);

  /// Whether all of [memory, memory + bytes) lies in one block.
  bool holds(const void* memory, std::size_t bytes);
  /// Whether any of it lies in the range of GPU memory.
  bool touches(const void* memory, std::size_t bytes) const;
  /// The GPU in whose range it lies; −1: none's.
  int gpu_of(const void* memory) const;
  std::size_t used(int gpu);

 private:
  struct Block {
    std::size_t bytes = 0, room = 0;  ///< room: with the guards
  };
  /// What a GPU has.
  struct Range {
    char* base = nullptr;
    std::size_t end = 0;                       ///< of what was ever used, bytes from base
    std::size_t used = 0;                      ///< bytes in blocks
    int depth = 0;                             ///< how often it is open
    std::map<std::size_t, Block> blocks;       ///< by place of the front guard
    std::map<std::size_t, std::size_t> holes;  ///< place → bytes
  };
  static void protect(Range& range, bool open);
  static void grow(Range& range, std::size_t end);

  char* base_ = nullptr;
  std::recursive_mutex mutex_;
  std::array<Range, kMostGpus> ranges_;
};

Arena& arena();

}  // namespace gossamer::emulation
