// A model compiled for one shape of data: the layout of the parameters in a peer's row, their
// starting values, what each operation costs, and the program that a device runs. The same model
// serves float and double.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/philox.hpp"
#include "base/result.hpp"
#include "gpu/program.hpp"
#include "train/graph/layer_graph.hpp"
#include "train/graph/lowering.hpp"

namespace gossamer::train {

/// An operation of a compiled model: shapes, and costs of one sample. The numbers of floating-point
/// operations count a multiplication and an addition as two.
struct CompiledOperation : Operation {  ///< inputs: indices of earlier operations, or kSampleInput
  Shape output;
  std::size_t first_layer = 0, layers = 0;  ///< of the graph of layers
  std::size_t first_block = 0, blocks = 0;  ///< its tensors of parameters
  std::size_t parameters = 0;               ///< their values
  double forward_flops = 0, backward_flops = 0;
  std::size_t memory_values = 0;  ///< of the whole batch: the output, and what the operation needs
                                  ///< beside it
};

/// Immutable. Thread: any.
class CompiledModel {
 public:
  /// Compiles for batches of up to `batch` samples. Errors (invalid), with the operation's name:
  /// those of ordered(), operators that do not fit their inputs, and an output that does not fit
  /// the data. `sample_gradient`: the backward pass leaves the gradient in the samples in the
  /// workspace, in the inputs of the layers that take them (train/graph/sample_gradients.hpp); then
  /// too (invalid): tokens, which have none.
  static Result<CompiledModel> compile(const ModelSpec& spec, const ModelContext& data, int batch,
                                       bool sample_gradient = false);

  const gpu::Program& program() const { return program_; }
  const std::vector<ParameterBlock>& blocks() const { return blocks_; }
  std::size_t parameters() const { return program_.parameters; }  ///< d
  /// In the order in which they run.
  const std::vector<CompiledOperation>& operations() const { return operations_; }
  const LayerGraph& graph() const { return graph_; }
  /// Values of a peer's workspace that hold gradients of outputs.
  std::size_t gradient_values() const { return gradient_values_; }

  /// Starting parameters: weights of operations with relu or gelu by He et al. 2015 (normal,
  /// variance 2 / fan-in), other weights by Glorot and Bengio 2010 (uniform within ±sqrt(6 /
  /// (fan-in
  /// + fan-out))), embeddings normal with deviation 0.02 (Radford et al. 2019), scales 1, the rest
  /// 0. Drawn in double from the streams (seed, stream, Purpose::initial_parameters, block number).
  /// `part`: whole blocks of the row, from value `begin` on.
  template <class Real>
  void initialise(std::uint64_t seed, std::uint32_t stream, std::span<Real> part,
                  std::size_t begin = 0) const;

 private:
  friend class Compiler;

  gpu::Program program_;
  LayerGraph graph_;
  std::vector<ParameterBlock> blocks_;
  std::vector<CompiledOperation> operations_;
  std::size_t gradient_values_ = 0;
};

}  // namespace gossamer::train
