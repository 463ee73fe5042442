// The memory of the emulated cards: a range of addresses for each, which nobody can touch but
// kernels, products and copies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "control.hpp"

namespace gossamer::emulation {

/// A set of cards, one bit each.
using Cards = std::uint32_t;
inline constexpr Cards kAllCards = ~Cards{0};
constexpr Cards only(int card) { return Cards{1} << card; }

/// Any thread.
class Arena {
 public:
  Arena();

  /// Opens the memory of some cards to this process while it lives; one at a time, others wait. May
  /// be nested in a thread.
  class Open {
   public:
    explicit Open(Cards cards = kAllCards);
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Cards cards_;
  };

  /// Null when card `card` has fewer than `bytes` of its `limit` left. 256-byte aligned, full of
  /// NaN.
  void* allocate(int card, std::size_t bytes, std::size_t limit);
  /// False when no block begins there. Stops the program when something was written past the
  /// block's ends.
  bool release(void* memory);

  /// Whether all of [memory, memory + bytes) lies in one block.
  bool holds(const void* memory, std::size_t bytes);
  /// Whether any of it lies in the range of card memory.
  bool touches(const void* memory, std::size_t bytes) const;
  /// The card in whose range it lies; −1: none's.
  int card_of(const void* memory) const;
  std::size_t used(int card);

 private:
  struct Block {
    std::size_t bytes = 0, room = 0;  ///< room: with the guards
  };
  /// What a card has.
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
  std::array<Range, kMostCards> ranges_;
};

Arena& arena();

}  // namespace gossamer::emulation
