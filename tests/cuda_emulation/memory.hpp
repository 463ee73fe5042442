// The memory of the emulated GPUs: one range of addresses for each. Only kernels, products and
// copies can access it.
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
/// The bytes of memory that nothing has been written to: NaN in float and double, −1 in integers.
inline constexpr int kPoison = 0xFF;

/// Memory between two guards, `total` bytes at `begin`: a guard of `guard` bytes, `bytes` bytes of
/// memory, and the rest, which is the second guard.
struct Guarded {
  char* begin = nullptr;
  std::size_t guard = 0, bytes = 0, total = 0;

  /// Fills the memory with poison, and the guards with NaN too.
  void fill() const;
  /// Stops the program if a guard was written. `kind`: of memory, for the message ("a block").
  void check(const char* kind) const;
};

/// Thread: any.
class Arena {
 public:
  Arena();

  /// Makes the memory of some GPUs accessible while it lives. One thread at a time; others wait.
  /// May be nested within a thread.
  class Open {
   public:
    explicit Open(Gpus gpus = kAllGpus);
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Gpus gpus_;
  };

  /// Memory full of NaN, 256-byte aligned. Null if fewer than `bytes` of the GPU's `limit` are
  /// free.
  void* allocate(int gpu, std::size_t bytes, std::size_t limit);
  /// False if no block begins there. Stops the program if the guards around the block were written.
  bool release(void* memory);

  /// Whether [memory, memory + bytes) lies in one block.
  bool holds(const void* memory, std::size_t bytes);
  /// Whether it overlaps the addresses of GPU memory.
  bool touches(const void* memory, std::size_t bytes) const;
  /// The GPU of an address; −1: none.
  int gpu_of(const void* memory) const;
  std::size_t used(int gpu);

 private:
  struct Block {
    std::size_t bytes = 0, total = 0;  ///< total: with the guards
  };
  /// The addresses of one GPU.
  struct Range {
    char* base = nullptr;
    std::size_t end = 0;                       ///< highest use so far, bytes from base
    std::size_t used = 0;                      ///< bytes in blocks
    int depth = 0;                             ///< number of nested Open objects
    std::map<std::size_t, Block> blocks;       ///< by offset of the front guard
    std::map<std::size_t, std::size_t> holes;  ///< offset → bytes
  };
  static void protect(Range& range, bool open);
  static void grow(Range& range, std::size_t end);

  char* base_ = nullptr;
  std::recursive_mutex mutex_;
  std::array<Range, kMostGpus> ranges_;
};

Arena& arena();

/// Whether [memory, memory + bytes) lies in one block of pinned memory of the host.
bool is_pinned(const void* memory, std::size_t bytes);

/// Stops the program unless [memory, memory + bytes) lies in one block of GPU memory or of pinned
/// memory: `reader` ("cuBLAS") would fault on a GPU.
void require_reachable(const void* memory, std::size_t bytes, const char* reader);

}  // namespace gossamer::emulation
