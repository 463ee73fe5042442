// Reading gzip from memory, without trusting it: zlib's inflate behind one function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::train {

/// Whether the bytes begin as gzip does (RFC 1952: 1f 8b).
bool is_gzip(std::span<const unsigned char> bytes);

/// The first `limit` bytes of what `bytes` unpack to; all of them if they are fewer. Several
/// members after each other are one content, as RFC 1952 has it. Memory: at most about twice what
/// is returned, so a small file that claims much costs nothing. The checksum is verified when the
/// end is reached, so ask for one byte more than is expected. Errors (of kind data, beginning with
/// `name`): cut short, damaged, followed by something that is not gzip.
Result<std::vector<unsigned char>> gunzip(const std::string& name,
                                          std::span<const unsigned char> bytes, std::size_t limit);

}  // namespace gossamer::train
