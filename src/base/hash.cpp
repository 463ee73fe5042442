#include "base/hash.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gossamer {

std::uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hash_hex(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_hex(std::string_view text) { return hash_hex(std::as_bytes(std::span(text))); }

std::string hash_hex(std::span<const float> row) { return hash_hex(std::as_bytes(row)); }

}  // namespace gossamer
