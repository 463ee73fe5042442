// Models in TOML files: [[operation]] tables with the keys `name`, `kind`, `inputs`, and the
// parameters of the operator (docs/MODELS.md).
#pragma once

#include <string>

#include "base/result.hpp"
#include "train/graph/model_graph.hpp"

namespace gossamer::train {

/// The name by which an operation takes the samples.
inline constexpr const char* kSamplesName = "samples";

/// Reads a model for these data. Its operations are in the order of the file, and it can be
/// compiled for the data. Errors: (data) the file cannot be read; (invalid) it is no model, with
/// the file, the line and the name of the operation.
Result<ModelSpec> read_model_file(const std::string& path, const ModelContext& context);

}  // namespace gossamer::train
