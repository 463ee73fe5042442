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
using gpu::Loss;  ///< softmax_cross_entropy; squared_error: ½ (ŷ − y)²; both averaged over the
                  ///< batch

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
  int size = 2;  ///< square window, stride = size; what does not fill a window is left out
};
struct GroupNorm {  ///< Wu and He 2018: statistics within a sample, so a peer's small batches do
                    ///< not matter
  int groups = 1;
  Activation activation = Activation::none;
};
using Layer = std::variant<Dense, Convolution, MaxPool, GroupNorm>;

struct ModelSpec {
  std::vector<Layer> layers;
  Loss loss = Loss::softmax_cross_entropy;
};

/// What a model is asked to fit: the data's shapes.
struct ModelContext {
  int channels = 1, height = 1, width = 1;
  int classes = 0;  ///< 0: regression on one target
};

struct ModelKind {
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterSpec> parameters;
  /// The layers for these data, or why this model cannot be trained on them (a CNN on vectors,
  /// softmax on regression).
  std::function<Result<ModelSpec>(const ModelContext&, const ParameterValues&)> make;
};

namespace models {
std::vector<ModelKind> catalog();
}  // namespace models

/// Builds model `kind`; an unknown kind is an error that lists the kinds.
Result<ModelSpec> make_model(const std::string& kind, const ModelContext& context,
                             const ParameterValues& values);

/// For the files of models/: an error in words unless the data have at least two classes.
Status require_classes(const std::string& kind, const ModelContext& context);

}  // namespace gossamer::train
