// Base64 (RFC 4648), of keys and of sketches.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer::net {

std::string encode_base64(std::span<const std::byte> bytes);
/// Nothing if `text` is not what encode_base64() makes of some bytes, at most 1 MiB of it.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace gossamer::net
