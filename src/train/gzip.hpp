// Unpacks gzip data from memory that may be damaged or hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::train {

/// Whether the bytes begin with the signature of gzip (RFC 1952: 1f 8b).
bool is_gzip(std::span<const unsigned char> bytes);

/// The first `limit` bytes of the unpacked content, or all of it if it is shorter. Several members
/// after each other are one content, and zero bytes behind a member are ignored (RFC 1952,
/// gzip(1)). Uses at most about twice the memory of the result, so a small file that claims a large
/// content costs nothing. The checksum is verified at the end of the content, so callers set
/// `limit` one byte above the expected size. Errors (data, beginning with `name`): cut short,
/// damaged, or followed by bytes that are not gzip.
Result<std::vector<unsigned char>> gunzip(const std::string& name,
                                          std::span<const unsigned char> bytes, std::size_t limit);

}  // namespace gossamer::train
