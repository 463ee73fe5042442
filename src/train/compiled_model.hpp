// A model compiled for one shape of data: the layout of the parameters in a peer's row, their
// starting values, and the program that a device runs. The same network serves float and double.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/philox.hpp"
#include "base/result.hpp"
#include "gpu/program.hpp"
#include "train/model.hpp"

namespace gossamer::train {

/// One tensor of the row, row-major. Blocks follow each other without gaps.
struct ParameterBlock {
  std::string name;        ///< "0.dense.weights": layer number, kind, role
  std::vector<int> shape;  ///< dense weights [inputs, outputs], convolution weights [kernel,
                           ///< kernel, inputs, outputs]
  std::size_t offset = 0;  ///< values from the row's start
  std::size_t length = 0;

  enum class Start { zero, one, he_normal, glorot_uniform };
  Start start = Start::zero;
  std::int64_t fan_in = 0, fan_out = 0;
};

/// Immutable. Thread: any.
class CompiledModel {
 public:
  /// Compiles for batches of up to `batch` samples. Errors (invalid): why the layers do not fit the
  /// data, with the layer's number.
  static Result<CompiledModel> compile(const ModelSpec& spec, const ModelContext& data, int batch);

  const gpu::Program& program() const { return program_; }
  const std::vector<ParameterBlock>& blocks() const { return blocks_; }
  std::size_t parameters() const { return program_.parameters; }  ///< d

  /// Starting parameters: weights of relu layers by He et al. 2015 (normal, variance 2 / fan-in),
  /// other weights by Glorot and Bengio 2010 (uniform within ±sqrt(6 / (fan-in + fan-out))), scales
  /// 1, the rest 0. Drawn in double from the streams (seed, stream, Purpose::initial_parameters,
  /// block number). `row` has parameters() values.
  template <class Real>
  void initialise(std::uint64_t seed, std::uint32_t stream, std::span<Real> row) const;

 private:
  gpu::Program program_;
  std::vector<ParameterBlock> blocks_;
};

}  // namespace gossamer::train
