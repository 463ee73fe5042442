// Where a model is cut into stages of consecutive operations.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/split/options.hpp"

namespace gossamer::train {

/// The operations with which the stages begin, the first being 0: SplitModel::make() has the rule
/// and the errors.
Result<std::vector<std::size_t>> choose_cuts(const CompiledModel& model,
                                             const SplitOptions& options);

}  // namespace gossamer::train
