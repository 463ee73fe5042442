// Remembers the hashes of leased memory. A row goes to several neighbours, and the frames of each
// copy need its hash: with this memo a row is hashed once for all of them.
//
// Why a remembered hash is right: memory does not change while any lease on it exists. The chunk
// that was hashed held a lease from before the hashing until its release. A second chunk of the
// same memory that was leased before that release therefore holds the same bytes, and keeps them
// unchanged for as long as its own lease lasts.
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
  /// A position in the order of leases and releases.
  using Moment = std::uint64_t;

  /// The moment of a lease. To be called when a chunk is handed over.
  Moment leased() { return ++clock_; }
  /// hash64 of the payload of a chunk that was leased at `leased` and still is.
  std::uint64_t hash(std::span<const std::byte> payload, Moment leased);
  /// To be called before the lease of a chunk ends that may have been hashed.
  void release(std::span<const std::byte> payload);

 private:
  /// Bounds how many chunks of a row one neighbour may be behind another.
  static constexpr std::size_t kEntries = 256;
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
