// A model cut by layers: consecutive operations form parts, which the workers of a replica hold
// (pipeline parallelism; Huang et al. 2019, "GPipe"). A part is a program of its own for
// microbatches; outputs that another part takes, and their gradients, cross between the workers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/split/options.hpp"

namespace gossamer::train {

/// What one worker holds.
struct ModelPart {
  gpu::Program program;  ///< its parameters begin at `row_begin` of the model's row
  std::size_t row_begin = 0;
  std::vector<ParameterBlock> blocks = {};       ///< their offsets are from `row_begin`
  std::string first, last;                       ///< names of its first and last operation
  double forward_flops = 0, backward_flops = 0;  ///< of one sample
  std::size_t parameters() const { return program.parameters; }
  /// "2.dense", or "2.dense to 4.dense".
  std::string operations() const { return first == last ? first : first + " to " + last; }
};

/// A tensor that one part makes and another takes.
struct Crossing {
  /// The gradient for one use of the tensor: offsets in the workspaces of the part that takes the
  /// tensor, which makes the gradient, and of the part that made the tensor.
  struct Gradient {
    std::size_t at_user = 0, at_maker = 0;
  };

  int maker = 0, user = 0;  ///< parts
  std::size_t values = 0;   ///< of a sample
  std::size_t at_maker = 0, at_user = 0;
  /// Of each use; empty: nothing before the tensor has parameters.
  std::vector<Gradient> gradients;
};

/// Immutable. Thread: any.
class SplitModel {
 public:
  /// Cuts `model` into options.layers parts, for microbatches of batches of up to `batch` samples:
  /// before the operations that options.cuts names, or so that the largest number of floating-point
  /// operations of a part is least, and then the number of values that cross, counted at each cut.
  /// Errors (invalid): more parts than operations with parameters, a name that no operation has,
  /// names that are not in order, a part without parameters.
  static Result<SplitModel> make(const CompiledModel& model, const SplitOptions& options,
                                 int batch);

  const std::vector<ModelPart>& parts() const { return parts_; }
  /// In the order of the tensors.
  const std::vector<Crossing>& crossings() const { return crossings_; }

 private:
  std::vector<ModelPart> parts_;
  std::vector<Crossing> crossings_;
};

}  // namespace gossamer::train
