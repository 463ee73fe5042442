// Reads a data file.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"

namespace gossamer::train {

/// The whole file. Errors (data, beginning with the file's name): missing, not a regular file, not
/// readable.
Result<std::vector<unsigned char>> read_bytes(const std::filesystem::path& file);

}  // namespace gossamer::train
