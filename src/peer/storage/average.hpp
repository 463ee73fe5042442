// One model from many: the mean of tensors of equal names in safetensors files, as `gossamer
// average` makes it.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

/// What was averaged.
struct Averaged {
  std::size_t models = 0;  ///< peers of all files; where files hold no peers, files
  std::size_t tensors = 0, parameters = 0;  ///< of the mean
};

/// Writes the mean of the files' models to `output`, summed in double in the files' order and
/// rounded once. A file of a run (final parameters, or a checkpoint) holds a model for each of its
/// peers, "peer3.<name>": the mean has their parameters, as
/// "<name>"; servers and the rest of a checkpoint's state are left out. Any other file is a model.
/// Errors (data) name the file and the tensor: missing, of another shape, or that some files hold
/// peers and others do not.
Result<Averaged> average(const std::vector<std::filesystem::path>& files,
                         const std::filesystem::path& output);

}  // namespace gossamer::peer
