// A model as data: a list of layers and a loss. One file of train/models/ is one kind; the layers
// themselves run on the Device (train/compiled_model.hpp), so a model is written once for CPU and
// GPU, float and double.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "gpu/program.hpp"

namespace gossamer::train {

using gpu::Activation;  ///< none, relu, tanh
using gpu::Loss;        ///< softmax_cross_entropy, squared_error

struct Dense {
  int units = 0;
  Activation activation = Activation::none;
  bool bias = true;
};
struct Convolution {  ///< stride 1
  int channels = 0;
  int kernel = 3;   ///< square
  int padding = 0;  ///< zeros on every side
  Activation activation = Activation::none;
};
struct MaxPool {
  int size = 2;  ///< square window, stride = size; pixels that do not fill a window are left out
};
/// Wu and He 2018. Statistics are within a sample, so a peer's small batches do not matter.
struct GroupNorm {
  int groups = 1;
  Activation activation = Activation::none;
};
using Layer = std::variant<Dense, Convolution, MaxPool, GroupNorm>;

struct ModelSpec {
  std::vector<Layer> layers;
  Loss loss = Loss::softmax_cross_entropy;
};

/// The shapes of the data that a model fits.
struct ModelContext {
  int channels = 1, height = 1, width = 1;
  int classes = 0;  ///< 0: regression on one target
};

struct ModelKind {
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterSpec> parameters;
  /// The layers for these data. Errors (invalid): why this model cannot be trained on them (a CNN
  /// on vectors, softmax on regression).
  std::function<Result<ModelSpec>(const ModelContext&, const ParameterValues&)> make;
};

namespace models {
std::vector<ModelKind> catalog();
}  // namespace models

/// Builds model `kind`. Errors (invalid): an unknown kind, with a list of the kinds, or the
/// factory's.
Result<ModelSpec> make_model(const std::string& kind, const ModelContext& context,
                             const ParameterValues& values);

/// For the files of models/: an error (invalid) unless the data have at least two classes.
Status require_classes(const std::string& kind, const ModelContext& context);

}  // namespace gossamer::train
