// From an operation of a model to the layers of a program: the shape of its output, its parameters,
// and what it costs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/low_rank_requests.hpp"
#include "gpu/program.hpp"
#include "train/graph/model_graph.hpp"

namespace gossamer::train {

/// One tensor of the row, row-major. Blocks follow each other without gaps.
struct ParameterBlock {
  std::string name;        ///< "0.dense.weights": the operation's name and the tensor's role
  std::vector<int> shape;  ///< dense weights [inputs, outputs], convolution weights [kernel,
                           ///< kernel, inputs, outputs], embeddings [vocabulary, features]
  std::size_t offset = 0;  ///< values from the row's start
  std::size_t length = 0;

  enum class Start { zero, one, he_normal, glorot_uniform, embedding };
  Start start = Start::zero;
  std::int64_t fan_in = 0, fan_out = 0;

  /// Of a dense operation that takes the samples as they are, and of one whose result is the
  /// model's output, without activation.
  bool takes_samples = false, gives_outputs = false;
};

/// The blocks as matrices, for algorithms that multiply them: the dimensions of a tensor are
/// divided into those of its rows and of its columns where the two products have the smallest sum.
std::vector<gpu::MatrixShape> matrices_of(std::span<const ParameterBlock> blocks);

/// The blocks of a row, one after the other.
class ParameterLayout {
 public:
  /// Adds a block behind the others. Returns its offset.
  std::size_t add(ParameterBlock block);
  /// The blocks from the `first` on.
  std::span<ParameterBlock> from(std::size_t first) { return std::span(blocks_).subspan(first); }
  std::size_t values() const;  ///< d
  const std::vector<ParameterBlock>& blocks() const { return blocks_; }

 private:
  std::vector<ParameterBlock> blocks_;
};

struct LoweredLayer {
  decltype(gpu::LayerOperation::operation) operation;
  int positions = 1;  ///< as of gpu::LayerOperation
};

/// An operation as layers. The first takes the operation's inputs and each other the output of the
/// one before; all outputs have the same shape. A reshape has no layer.
struct LoweredOperation {
  Shape output;
  std::vector<LoweredLayer> layers;
  /// Floating-point operations of one sample; a multiplication and an addition are two. Of the
  /// backward pass, those for the gradients of the parameters and of the inputs.
  double forward_flops = 0, parameter_gradient_flops = 0, input_gradient_flops = 0;
};

/// Lowers `operation`, whose inputs have the given shapes, and adds its parameters to `parameters`.
/// Errors (invalid): why the operator does not fit its inputs; the message does not name the
/// operation.
Result<LoweredOperation> lower(const Operation& operation, std::span<const Shape> inputs,
                               ParameterLayout& parameters);

}  // namespace gossamer::train
