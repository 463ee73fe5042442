// A model as data: a graph of operations and a loss. An operation applies an operator to the
// outputs of other operations, or to the samples. The operators run on the Device
// (train/graph/compiled_model.hpp), so a model is written once for CPU and GPU, float and double.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "gpu/program.hpp"

namespace gossamer::train {

using gpu::Activation;  ///< none, relu, tanh, gelu
using gpu::Loss;        ///< softmax_cross_entropy, squared_error

/// One sample of a tensor: an image [height, width, channels], a sequence [height = positions,
/// width = 1, channels = features], or a vector. Row-major, channels last.
struct Shape {
  int height = 1, width = 1, channels = 1;

  int positions() const { return height * width; }
  std::size_t values() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels);
  }
  bool operator==(const Shape&) const = default;
};
/// "28 × 28 × 1", or "64" for a vector.
std::string to_string(const Shape& shape);

/// The shapes of the data that a model fits.
struct ModelContext {
  int channels = 1, height = 1, width = 1;
  int classes = 0;  ///< 0: regression on one target
};

/// y = activation(x W + b) of all values of a sample, or of the channels of each position.
struct Dense {
  int units = 0;
  Activation activation = Activation::none;
  bool bias = true;
  bool per_position = false;
};
struct Convolution {  ///< stride 1
  int channels = 0;
  int kernel = 3;   ///< square
  int padding = 0;  ///< zeros on every side
  Activation activation = Activation::none;
  bool bias = true;
};
struct MaxPool {
  int size = 2;  ///< square window, stride = size; pixels that do not fill a window are left out
};
struct AveragePool {
  int size = 0;  ///< as of MaxPool; 0: the mean over all positions
};
/// Wu and He 2018. Statistics are within a sample, so a peer's small batches do not matter.
struct GroupNorm {
  int groups = 1;
  Activation activation = Activation::none;
};
/// Ba, Kiros and Hinton 2016: the norm of the channels of each position.
struct LayerNorm {};
struct Activate {
  Activation activation = Activation::relu;
};
/// The sum of two or more tensors of equal shape: a residual connection (He et al. 2016).
struct Add {
  Activation activation = Activation::none;
};
/// The channels of two or more tensors of equal height and width, beside each other.
struct Concatenate {};
/// The same values in another shape, in row-major order. At most one extent is 0: it is inferred.
struct Reshape {
  int height = 1, width = 1, channels = 0;
};
/// Each value of a sample is a token, 0 … vocabulary − 1, and becomes a position of `features`
/// learned channels.
struct Embedding {
  int vocabulary = 0, features = 0;
};
/// Adds a learned tensor of the sample's shape: learned positions (Gehring et al. 2017).
struct PositionEmbedding {};
/// Scaled dot-product attention of Vaswani et al. 2017 within a sample: the channels of a position
/// are the query, key and value of its first head, then those of the next. The output has a third
/// of the channels.
struct Attention {
  int heads = 1;
  bool causal = false;  ///< a position attends to itself and those before it only
};

using Operator =
    std::variant<Dense, Convolution, MaxPool, AveragePool, GroupNorm, LayerNorm, Activate, Add,
                 Concatenate, Reshape, Embedding, PositionEmbedding, Attention>;

/// "dense", "max_pool", …: the name of the operator in model files and error messages.
const char* operator_name(const Operator& op);

/// "0.dense", "2.pool", …: the name of operation `number` where it has no other. `kind`: the index
/// of the alternative in Operator.
std::string default_name(std::size_t number, std::size_t kind);

/// The input of an operation that takes the samples.
inline constexpr int kSampleInput = -1;

struct Operation {
  std::string name;  ///< unique in its model; the names of its parameters begin with it
  Operator op;
  std::vector<int> inputs;  ///< indices of operations, or kSampleInput
};

/// The output of the model is that of its last operation in the order of ordered().
struct ModelSpec {
  std::vector<Operation> operations;
  Loss loss = Loss::softmax_cross_entropy;
};

/// The model that applies `operators` one after the other, with default names.
ModelSpec chain(std::vector<Operator> operators, Loss loss);

/// The same model with its operations in an order in which each follows its inputs; among several
/// such orders, the one that keeps closest to the given one. Errors (invalid), with the names of
/// the operations: there is none, an input that does not exist, a wrong number of inputs, a cycle,
/// or more than one operation whose output no other operation takes.
Result<ModelSpec> ordered(const ModelSpec& spec);

}  // namespace gossamer::train
