// A row goes to several neighbours, and each copy's frames need its hash: this remembers hashes of
// memory that is lent, so that a row is hashed once however many hear it.
//
// Why a remembered hash is right: memory does not change while any lease on it is out. The chunk
// that was hashed held one from before the hashing to its release; a second chunk of the same
// memory that was lent before that release therefore lends the same bytes, and goes on lending
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace gossamer::net {

/// Thread: the scheduler's.
class HashMemo {
 public:
  /// A point in the order of lendings and releases.
  using Moment = std::uint64_t;

  /// To be asked when a chunk is handed over.
  Moment lent() { return ++clock_; }
  /// hash64 of the payload of a chunk that was lent at `lent` and still is.
  std::uint64_t hash(std::span<const std::byte> payload, Moment lent);
  /// To be told before the lease of a chunk ends that hash() may have been asked of.
  void release(std::span<const std::byte> payload);

 private:
  static constexpr std::size_t kEntries =
      256;  // chunks of a row that one neighbour may be behind another
  static constexpr Moment kHeld = std::numeric_limits<Moment>::max();

  struct Entry {
    const std::byte* data = nullptr;
    std::size_t size = 0;
    std::uint64_t hash = 0;
    Moment released = 0;
  };
  Entry& entry(std::span<const std::byte> payload);

  std::array<Entry, kEntries> entries_{};
  Moment clock_ = 0;
};

}  // namespace gossamer::net
