// A small convolutional network of LeNet's class: twice (convolution 5×5, group norm, relu,
// max-pool 2×2), then dense. Group norm takes the place of no norm: it does not look across the
// samples of a batch, so small non-IID batches do not hurt it (Hsieh et al. 2020).
#include <fmt/format.h>

#include "train/model.hpp"

namespace gossamer::train::models::cnn {
namespace {

struct CnnOptions {
  std::vector<int> channels = {8, 16};
  int groups = 4;
};

const ParameterSet<CnnOptions>& cnn_parameters() {
  static const auto set =
      ParameterSet<CnnOptions>()
          .add("channels", &CnnOptions::channels,
               {.help = "channels of each convolution, input side first",
                .minimum = 1,
                .maximum = 4096,
                .unit = "channels"})
          .add("groups", &CnnOptions::groups,
               {.help = "groups of each group norm; divides every number of channels",
                .minimum = 1,
                .maximum = 4096});
  return set;
}

Result<ModelSpec> make(const ModelContext& context, const ParameterValues& values) {
  GOSSAMER_TRY_STATUS(require_classes("cnn", context));
  GOSSAMER_TRY(const CnnOptions options, cnn_parameters().read("model", values));
  if (context.height < 2 || context.width < 2)
    return invalid_error(fmt::format(
        "model.kind: cnn needs images, but a sample of these data is {} × {} (give softmax or mlp)",
        context.height, context.width));
  if (options.channels.empty())
    return invalid_error("model.channels: empty; give the channels of at least one convolution");
  std::vector<Operator> operators;
  int height = context.height, width = context.width;
  for (int channels : options.channels) {
    if (height < 2 || width < 2)
      return invalid_error(fmt::format(
          "model.channels: {} convolutions, each followed by a 2 × 2 pool, are too many for images "
          "of {} × {}",
          options.channels.size(), context.height, context.width));
    if (channels % options.groups != 0)
      return invalid_error(
          fmt::format("model.groups: {} does not divide {} channels", options.groups, channels));
    operators.push_back(Convolution{.channels = channels, .kernel = 5, .padding = 2});
    operators.push_back(GroupNorm{.groups = options.groups, .activation = Activation::relu});
    operators.push_back(MaxPool{.size = 2});
    height /= 2, width /= 2;
  }
  operators.push_back(Dense{.units = context.classes});
  return chain(std::move(operators), Loss::softmax_cross_entropy);
}

}  // namespace

ModelKind descriptor() {
  return {.name = "cnn",
          .summary =
              "LeNet-class network: (convolution 5×5, group norm, relu, max-pool) twice, dense; "
              "cross entropy",
          .source = "LeCun et al., Proc. IEEE 1998; group norm: Wu and He, ECCV 2018",
          .parameters = cnn_parameters().specs(),
          .make = make};
}

}  // namespace gossamer::train::models::cnn
