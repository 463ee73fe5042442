// Every layer, its gradient held to central differences in double, and small values worked out by
// hand.
#include "tests/train/compiled_model_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// Tests `layer` between the data and a dense layer of 3 classes, once alone and once twice in a
/// row, so that the gradient of its input is tested too.
void check_layer(std::vector<Operator> layers, const ModelContext& shape, int batch = 3) {
  ModelContext data = shape;
  data.classes = 3;
  layers.push_back(Dense{.units = 3});
  check_gradient(Bench(chain(layers, Loss::softmax_cross_entropy), data, batch));
}

constexpr ModelContext kVector{.channels = 1, .height = 1, .width = 7};
constexpr ModelContext kOneChannel{.channels = 1, .height = 6, .width = 5};
constexpr ModelContext kColour{.channels = 3, .height = 5, .width = 6};

}  // namespace

TEST_CASE("dense layers: every activation, with and without bias, widths around a register's") {
  for (Activation activation : {Activation::none, Activation::relu, Activation::tanh})
    for (int units : {1, 7, 8, 17, 33})
      for (bool bias : {true, false}) {
        CAPTURE(units);
        check_layer({Dense{.units = units, .activation = activation, .bias = bias}}, kVector, 13);
      }
  check_layer({Dense{.units = 9, .activation = Activation::tanh},
               Dense{.units = 5, .activation = Activation::relu}},
              kVector);
}

TEST_CASE("convolutions: paddings, kernels, channels, one behind the other") {
  for (int kernel : {1, 3, 4})
    for (int padding = 0; padding < std::min(kernel, 3); ++padding)
      for (const ModelContext& shape : {kOneChannel, kColour}) {
        CAPTURE(kernel);
        CAPTURE(padding);
        check_layer({Convolution{.channels = 5,
                                 .kernel = kernel,
                                 .padding = padding,
                                 .activation = Activation::tanh}},
                    shape);
      }
  check_layer(
      {Convolution{.channels = 4, .kernel = 3, .padding = 1, .activation = Activation::tanh},
       Convolution{.channels = 18, .kernel = 3, .padding = 0, .activation = Activation::relu},
       Convolution{.channels = 2, .kernel = 2, .padding = 1, .bias = false}},
      kColour, 2);
}

TEST_CASE("max-pool routes the gradient to the maximum, windows that do not fill included") {
  for (int size : {1, 2, 3})
    check_layer({Convolution{.channels = 3, .kernel = 3, .padding = 1}, MaxPool{.size = size}},
                kOneChannel);
}

TEST_CASE("group norm: from instance norm to layer norm") {
  for (int groups : {1, 2, 6})
    for (Activation activation : {Activation::none, Activation::tanh})
      check_layer({Convolution{.channels = 6, .kernel = 3},
                   GroupNorm{.groups = groups, .activation = activation}},
                  kColour);
  check_layer({Convolution{.channels = 20, .kernel = 2},
               GroupNorm{.groups = 5, .activation = Activation::relu}, MaxPool{.size = 2}},
              kOneChannel);
}

TEST_CASE("squared error") {
  check_gradient(Bench(chain({Dense{.units = 1}}, Loss::squared_error), kVector, 11));
  check_gradient(Bench(
      chain({Dense{.units = 6, .activation = Activation::tanh}, Dense{.units = 1, .bias = false}},
            Loss::squared_error),
      kVector, 4));
}

namespace {

/// A job on one hand-made sample.
template <class Real>
double loss_of(const ModelSpec& spec, ModelContext data, std::vector<float> features,
               std::int32_t label, float target, std::vector<Real> row,
               std::vector<Real>& gradient) {
  auto network = CompiledModel::compile(spec, data, 1);
  REQUIRE(network.ok());
  REQUIRE(network->parameters() == row.size());
  gradient.assign(row.size(), 0);
  double loss = 0;
  const std::uint32_t sample = 0;
  const gpu::Task task{
      .program = &network->program(),
      .tables = {{.features = features.data(), .labels = &label, .targets = &target}}};
  const gpu::Job<Real> job{.parameters = row.data(),
                           .gradient = gradient.data(),
                           .samples = &sample,
                           .batch = 1,
                           .loss = &loss};
  gpu::BasicCpuDevice<Real>(1).train(task, gpu::Pass::gradient, std::span(&job, 1));
  return loss;
}

}  // namespace

TEST_CASE_TEMPLATE("small values by hand: softmax, squared error", Real, float, double) {
  std::vector<Real> gradient;
  // Equal logits: ℓ = log 2, p = 1/2; dW = xᵀ (p − onehot).
  const ModelSpec softmax = chain({Dense{.units = 2}}, Loss::softmax_cross_entropy);
  const double loss = loss_of<Real>(softmax, {.width = 2, .classes = 2}, {1, 2}, 1, 0,
                                    {1, 1, 1, 1, 0, 0}, gradient);
  CHECK(loss == doctest::Approx(std::log(2.0)));
  CHECK(gradient == std::vector<Real>{0.5, -0.5, 1, -1, 0.5, -0.5});
  // ŷ = 2·3 + 1·(−1) = 5, y = 3: ½ · 4; dw = (ŷ − y) x.
  const ModelSpec linear = chain({Dense{.units = 1, .bias = false}}, Loss::squared_error);
  CHECK(loss_of<Real>(linear, {.width = 2}, {3, -1}, 0, 3, {2, 1}, gradient) == 2);
  CHECK(gradient == std::vector<Real>{6, -2});
}

TEST_CASE_TEMPLATE("small values by hand: a convolution, a pool", Real, float, double) {
  // 2 × 2 image [1 2; 3 4], kernel [1 0; 0 10] with padding 1 at the frame: the nine sums, of which
  // the pool of 3 × 3 takes the greatest, 1 + 40 + bias 1; it regresses on 0 with weight 1.
  const ModelSpec spec = chain({Convolution{.channels = 1, .kernel = 2, .padding = 1},
                                MaxPool{.size = 3}, Dense{.units = 1, .bias = false}},
                               Loss::squared_error);
  std::vector<Real> gradient;
  const double loss = loss_of<Real>(spec, {.height = 2, .width = 2}, {1, 2, 3, 4}, 0, 0,
                                    {1, 0, 0, 10, 1, 1}, gradient);
  CHECK(loss == 0.5 * 42 * 42);
  CHECK(gradient == std::vector<Real>{42 * 1, 42 * 2, 42 * 3, 42 * 4, 42, 42 * 42});
}

TEST_CASE("group norm by hand: two values become ±1") {
  const ModelSpec spec =
      chain({GroupNorm{.groups = 1}, Dense{.units = 1, .bias = false}}, Loss::squared_error);
  std::vector<double> gradient;
  // x = (3, 7): μ = 5, σ = 2, x̂ = ∓1; scale 2, shift 1: y = (−1, 3).
  const double shrink = 2 / std::sqrt(4 + gpu::GroupNormOperation::kEpsilon);
  const double loss =
      loss_of<double>(spec, {.height = 1, .width = 2}, {3, 7}, 0, 0, {2, 1, 1, 1}, gradient);
  CHECK(loss == doctest::Approx(0.5 * 2 * 2));
  CHECK(gradient[3] == doctest::Approx(2 * (1 + 2 * shrink)));
}

TEST_CASE("extreme logits and activations stay finite, NaN stays NaN") {
  std::vector<float> gradient;
  const ModelSpec softmax = chain({Dense{.units = 2}}, Loss::softmax_cross_entropy);
  const ModelContext data{.width = 1, .classes = 2};
  CHECK(loss_of<float>(softmax, data, {1000}, 1, 0, {1, -1, 0, 0}, gradient) ==
        doctest::Approx(2000));
  CHECK(gradient == std::vector<float>{1000, -1000, 1, -1});
  CHECK(std::isnan(loss_of<float>(softmax, data, {NAN}, 1, 0, {1, -1, 0, 0}, gradient)));
  const ModelSpec deep =
      chain({Dense{.units = 1, .activation = Activation::tanh}, Dense{.units = 2}},
            Loss::softmax_cross_entropy);
  CHECK(loss_of<float>(deep, data, {1e30F}, 0, 0, {1, 0, 1, 0, 0, 0}, gradient) ==
        doctest::Approx(std::log1p(std::exp(-1.0))));
  CHECK(gradient[0] == 0);
}
