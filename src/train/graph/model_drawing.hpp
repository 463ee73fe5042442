// Draws models: operations as boxes in rows, each below its inputs, and the bytes on each edge.
// SVG, without a library.
#pragma once

#include <string>

#include "base/result.hpp"
#include "train/graph/compiled_model.hpp"

namespace gossamer::train {

/// The most operations that a drawing can show legibly.
inline constexpr std::size_t kMostDrawnOperations = 200;

/// `title`: plain text. `samples`: the shape of a sample. Edges are labelled with the bytes of a
/// batch of `batch` samples in float. The error (invalid) is of a model of more than
/// kMostDrawnOperations operations.
Result<std::string> draw_model(const CompiledModel& model, const std::string& title,
                               const Shape& samples, int batch);

}  // namespace gossamer::train
