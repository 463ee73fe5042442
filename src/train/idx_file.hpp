// The IDX format of the MNIST files (Y. LeCun, C. Cortes, C. Burges,
// http://yann.lecun.com/exdb/mnist/), plain or gzip:
//   0, 0, type, number of dimensions;  each dimension as 4 bytes, big-endian;  the values, last
//   dimension fastest
// Only unsigned bytes (type 0x08) are read, the type of images and labels.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::train {

struct IdxArray {
  std::vector<std::size_t> dimensions;  ///< each at least 1; their product is values.size()
  std::vector<unsigned char> values;
};

/// Reads an array of exactly `dimensions` dimensions. Errors (data, beginning with `name`): neither
/// IDX nor gzip, another type or number of dimensions, empty, cut short, too long. The sizes that
/// the header claims are compared with the size of the content before memory is allocated for it;
/// gzip may unpack to 32 times its size plus 16 MiB.
Result<IdxArray> parse_idx(const std::string& name, std::span<const unsigned char> bytes,
                           int dimensions);

/// parse_idx of a file. Further errors (data): missing, not a regular file, not readable.
Result<IdxArray> read_idx(const std::filesystem::path& file, int dimensions);

}  // namespace gossamer::train
