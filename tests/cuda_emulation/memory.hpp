// The memory of the emulated cards: one range of addresses that nobody can touch but kernels, products and copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace gossamer::emulation {

/// Any thread.
class Arena {
 public:
  Arena();

  /// Opens the memory to this process while it lives; one at a time, others wait. May be nested in a thread.
  class Open {
   public:
    Open();
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
  };

  /// Null when card `card` has fewer than `bytes` of its `limit` left. 256-byte aligned, full of NaN.
  void* allocate(int card, std::size_t bytes, std::size_t limit);
  /// False when no block begins there. Stops the program when something was written past the block's ends.
  bool release(void* memory);

  /// Whether all of [memory, memory + bytes) lies in one block.
  bool holds(const void* memory, std::size_t bytes);
  /// Whether any of it lies in the range of card memory.
  bool touches(const void* memory, std::size_t bytes) const;
  std::size_t used(int card);

 private:
  struct Block {
    int card = 0;
    std::size_t bytes = 0, room = 0;  ///< room: with the guards
  };
  void protect(bool open);
  void grow(std::size_t end);

  char* base_ = nullptr;
  std::size_t end_ = 0;  // of what was ever used, bytes from base_
  std::recursive_mutex mutex_;
  int depth_ = 0;
  std::map<std::size_t, Block> blocks_;       // by place of the front guard
  std::map<std::size_t, std::size_t> holes_;  // place → bytes
  std::vector<std::size_t> used_;             // by card
};

Arena& arena();

}  // namespace gossamer::emulation
