// Content hashes (XXH3, 64 and 128 bits): of rows, files, configurations and frames. Not for
// secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gossamer {

/// XXH3-64 of the bytes: for frames.
std::uint64_t hash64(std::span<const std::byte> bytes);

/// XXH3-128 of the bytes as 32 hexadecimal digits: for hashes that people compare.
std::string hash_hex(std::span<const std::byte> bytes);
std::string hash_hex(std::string_view text);

/// hash_hex of a row's float values as they lie in memory (little-endian machines only, as all
/// supported ones are).
std::string hash_hex(std::span<const float> row);

}  // namespace gossamer
