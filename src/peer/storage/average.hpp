// `gossamer average`: one model from many, the element-wise mean of tensors with the same name in
// several safetensors files.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

/// What was averaged.
struct Averaged {
  std::size_t models = 0;   ///< number of peers in all files, plus one per file that has no peers
  std::size_t tensors = 0;  ///< tensors of one model
  std::size_t parameters = 0;  ///< values of one model
};

/// Writes the mean of the models in `files` to `output`. Values are summed in double in the order
/// of the files, and rounded once. A file of a run (final parameters or a checkpoint) contains one
/// model per peer, in tensors "peer3.<name>"; the mean contains the peers' parameters as "<name>",
/// and leaves out servers and the other state of a checkpoint. Any other file is one model. Errors
/// (data) name the file and the tensor: it is missing or has another shape, or some files contain
/// peers and others do not. Errors (invalid): the output is one of the files, or a file is given
/// twice.
Result<Averaged> average(const std::vector<std::filesystem::path>& files,
                         const std::filesystem::path& output);

}  // namespace gossamer::peer
