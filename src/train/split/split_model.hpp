// A model cut over the workers of a replica: by layers, consecutive operations forming the stages
// of a pipeline (Huang et al. 2019, "GPipe"), and inside layers, each stage being cut into slices
// (slicing.hpp). What one worker computes between two messages is a segment: a program of its own
// for microbatches. Outputs that another segment takes, and their gradients, are messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/split/options.hpp"

namespace gossamer::train {

/// Consecutive layers of one worker. Its segments share a workspace.
struct Segment {
  gpu::Program program;       ///< its parameters begin at `row_begin` of the worker's row
  int worker = 0;             ///< the part of SplitModel::parts()
  std::size_t row_begin = 0;  ///< values
  /// The backward pass is in two (gpu::PartPass) where another worker waits. `goes_on`: the first
  /// layer is a slice, whose gradient in the input begins with that of the slice before, and is
  /// made last. Else `sends_before_parameters`: gradients are sent before those of the first
  /// layer's parameters are made.
  bool goes_on = false, sends_before_parameters = false;
  /// Of backward_flops, those of the gradient in the first layer's input, or of its parameters,
  /// which are as many.
  double first_product_flops = 0;
  double forward_flops = 0, backward_flops = 0;  ///< of one sample
};

/// A tensor of parameters of a worker, or the columns of one that it holds: `rows` times `columns`
/// adjacent values, which lie one behind the other in the worker's row.
struct RowPiece {
  std::size_t rows = 0, columns = 0;
  std::size_t own = 0;     ///< in the worker's row
  std::size_t whole = 0;   ///< in the model's row
  std::size_t stride = 0;  ///< in the model's row, from one row of the piece to the next
};

/// What one worker holds: a stage, or a slice of one.
struct ModelPart {
  int stage = 0, slice = 0;
  std::vector<ParameterBlock> blocks = {};       ///< offsets are in the worker's row
  std::vector<RowPiece> pieces = {};             ///< by block
  std::size_t parameters = 0;                    ///< values of the worker's row
  std::size_t workspace = 0;                     ///< values for a microbatch
  std::string first, last;                       ///< names of its first and last operation
  double forward_flops = 0, backward_flops = 0;  ///< of one sample

  /// "2.dense", or "2.dense to 4.dense".
  std::string operations() const { return first == last ? first : first + " to " + last; }
  /// Calls run(whole, own, values) for all values of the worker's row that are adjacent in the
  /// model's row too, in ascending order: where they begin in the model's row and in the worker's.
  void for_each_run(auto&& run) const {
    for (const RowPiece& piece : pieces)
      for (std::size_t r = 0; r < piece.rows; ++r)
        run(piece.whole + r * piece.stride, piece.own + r * piece.columns, piece.columns);
  }
};

/// Copies the worker's row to its places in the model's row `whole`.
template <class Real>
void put_part(const ModelPart& part, const Real* own, std::span<Real> whole);

/// Fills the worker's row with its values of `model.initialise(seed, stream, …)`. Makes no more
/// than one tensor of the model at a time.
template <class Real>
void initialise_part(const CompiledModel& model, const ModelPart& part, std::uint64_t seed,
                     std::uint32_t stream, Real* own);

/// A tensor that a segment makes and segments of another worker take, in the forward or in the
/// backward pass.
struct Message {
  int from = 0, to = 0;                ///< segments; of several that take it, the first one
  std::size_t values = 0;              ///< of a sample
  std::size_t at_from = 0, at_to = 0;  ///< in the workspaces of the workers
  /// A gradient with which that of the segment `to` goes on.
  bool is_begun = false;
};

/// Immutable. Thread: any.
class SplitModel {
 public:
  /// Cuts `model` into options.layers stages of options.parameters slices each, for microbatches of
  /// batches of up to `batch` samples: before the operations that options.cuts names, or so that
  /// the largest number of floating-point operations of a stage is least, and then the number of
  /// values that cross, counted at each cut. Errors (invalid): more stages than operations with
  /// parameters, a name that no operation has, names that are not in order, a stage without
  /// parameters, or a slice.
  static Result<SplitModel> make(const CompiledModel& model, const SplitOptions& options,
                                 int batch);

  /// By worker: slice k of stage s is worker s · options.parameters + k.
  const std::vector<ModelPart>& parts() const { return parts_; }
  /// Of the model's row.
  const std::vector<ParameterBlock>& blocks() const { return blocks_; }
  /// Values of the model's row.
  std::size_t parameters() const {
    return blocks_.empty() ? 0 : blocks_.back().offset + blocks_.back().length;
  }
  /// In the order of the forward pass. Those of a stage follow each other.
  const std::vector<Segment>& segments() const { return segments_; }
  /// The segments of a stage: first … last − 1.
  struct Range {
    int first = 0, last = 0;
  };
  Range segments_of(int stage) const;
  int stages() const { return static_cast<int>(stage_ends_.size()); }
  bool is_eager() const { return is_eager_; }  ///< SplitOptions
  /// The worker that has the outputs, and so the loss.
  int last_worker() const { return segments_.back().worker; }
  /// Names of the operations with which stages 1, 2, … begin.
  const std::vector<std::string>& cuts() const { return cuts_; }
  /// In the order in which the segments of the pass send them.
  const std::vector<Message>& outputs() const { return outputs_; }
  const std::vector<Message>& gradients() const { return gradients_; }

 private:
  friend class ModelCutter;

  std::vector<ModelPart> parts_;
  std::vector<ParameterBlock> blocks_;
  std::vector<Segment> segments_;
  std::vector<int> stage_ends_;
  bool is_eager_ = false;
  std::vector<std::string> cuts_;
  std::vector<Message> outputs_, gradients_;
};

}  // namespace gossamer::train
