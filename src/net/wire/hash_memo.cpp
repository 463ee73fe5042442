#include "net/wire/hash_memo.hpp"

#include "base/hash.hpp"

namespace gossamer::net {

namespace {

constexpr std::size_t kWorthIt = 4096;  // bytes; less is hashed faster than looked up

}  // namespace

/// The one place where a hash of this memory may be. (Fibonacci hashing: Knuth, TAOCP 3, 6.4.)
HashMemo::Entry& HashMemo::entry(std::span<const std::byte> payload) {
  const auto address = reinterpret_cast<std::uintptr_t>(payload.data());
  return entries_[(address * 0x9E3779B97F4A7C15ULL) >> 56];
}

std::uint64_t HashMemo::hash(std::span<const std::byte> payload, Moment leased) {
  if (payload.size() < kWorthIt) return hash64(payload);
  Entry& known = entry(payload);
  if (known.data == payload.data() && known.size == payload.size() && leased < known.released)
    return known.hash;
  known = {payload.data(), payload.size(), hash64(payload), kHeld};
  return known.hash;
}

void HashMemo::release(std::span<const std::byte> payload) {
  if (payload.size() < kWorthIt) return;
  // The first release counts, be it of the chunk that was hashed or of another: until now the
  // hashed bytes were leased without a gap.
  Entry& known = entry(payload);
  if (known.data == payload.data() && known.released == kHeld) known.released = ++clock_;
}

}  // namespace gossamer::net
