// A data file as bytes.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"

namespace gossamer::train {

/// The whole file. Errors (of kind data) begin with its name: missing, not a regular file, not
/// readable.
Result<std::vector<unsigned char>> read_bytes(const std::filesystem::path& file);

}  // namespace gossamer::train
