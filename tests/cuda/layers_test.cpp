// Every layer and every model: loss and gradient on a GPU against the CPU in double.
#include <limits>

#include "tests/cuda/training_test_util.hpp"
#include "tests/train/graph_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr ModelContext kVector{.channels = 1, .height = 1, .width = 7, .classes = 3};
constexpr ModelContext kImage{.channels = 1, .height = 6, .width = 5, .classes = 3};
constexpr ModelContext kColour{.channels = 3, .height = 5, .width = 6, .classes = 3};

/// The layers, and behind them a dense one of 3 classes: gradient and loss of four peers with
/// different batches.
template <class Real>
void check_layers(gpu::BasicDevice<Real>& device, std::vector<Operator> layers,
                  const ModelContext& data, int batch = 5) {
  layers.push_back(Dense{.units = data.classes});
  check_parity<Real>(device, chain(layers, Loss::softmax_cross_entropy), data, {},
                     {batch, 1, batch, 3}, 4);
}

}  // namespace

TEST_CASE_TEMPLATE("GPU: dense layers", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh})
    for (const int units : {1, 8, 33})
      for (const bool bias : {true, false}) {
        CAPTURE(units);
        CAPTURE(bias);
        check_layers<Real>(*gpu_device,
                           {Dense{.units = units, .activation = activation, .bias = bias}}, kVector,
                           13);
      }
  check_layers<Real>(*gpu_device,
                     {Dense{.units = 300, .activation = Activation::tanh},
                      Dense{.units = 5, .activation = Activation::relu}},
                     kColour);
}

TEST_CASE_TEMPLATE("GPU: convolutions with several sums of a bias, and one of each weight", Real,
                   float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  check_layers<Real>(*gpu_device, {Convolution{.channels = 5, .kernel = 3, .padding = 1}}, kImage,
                     30);  // 900 positions
}

// Few outputs of a peer are computed by a kernel of ours, many by cuBLAS.
TEST_CASE_TEMPLATE("GPU: a dense layer with many outputs", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const bool bias : {true, false})
    check_layers<Real>(*gpu_device,
                       {Dense{.units = 1000, .activation = Activation::tanh, .bias = bias}},
                       kVector, 600);
}

TEST_CASE_TEMPLATE("GPU: convolutions", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const int kernel : {1, 3, 4})
    for (int padding = 0; padding < std::min(kernel, 3); ++padding)
      for (const ModelContext& data : {kImage, kColour}) {
        CAPTURE(kernel);
        CAPTURE(padding);
        check_layers<Real>(*gpu_device,
                           {Convolution{.channels = 5,
                                        .kernel = kernel,
                                        .padding = padding,
                                        .activation = Activation::tanh}},
                           data);
      }
  check_layers<Real>(
      *gpu_device,
      {Convolution{.channels = 4, .kernel = 3, .padding = 1, .activation = Activation::tanh},
       Convolution{.channels = 18, .kernel = 3, .padding = 0, .activation = Activation::relu},
       Convolution{.channels = 2, .kernel = 2, .padding = 1, .bias = false}},
      kColour);
}

TEST_CASE_TEMPLATE("GPU: max-pool, of the first of equal values", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const int size : {1, 2, 3}) {
    check_layers<Real>(
        *gpu_device, {Convolution{.channels = 3, .kernel = 3, .padding = 1}, MaxPool{.size = size}},
        kImage);
    // Behind relu many values of a window are equal: zero.
    check_layers<Real>(*gpu_device,
                       {Convolution{.channels = 3, .kernel = 1, .activation = Activation::relu},
                        MaxPool{.size = size}},
                       kImage);
    check_layers<Real>(*gpu_device, {MaxPool{.size = size}}, kColour);
  }
}

TEST_CASE_TEMPLATE("GPU: the largest value of a window with a NaN is NaN", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  const ModelContext data{.height = 2, .width = 2, .classes = 3};
  const CompiledModel network = compiled(
      chain({MaxPool{.size = 2}, Dense{.units = 3}}, Loss::softmax_cross_entropy), data, 1);
  std::vector<float> images(5 * 4, 1);
  for (std::size_t i = 0; i < 4; ++i) images[i * 4 + i] = std::numeric_limits<float>::quiet_NaN();
  gpu::BasicCpuDevice<Real> cpu(1);
  for (const EachAlone<Real>& found :
       {EachAlone<Real>(cpu, network, 5, images), EachAlone<Real>(*gpu_device, network, 5, images)})
    CHECK(found.have_nan() == std::vector<bool>{true, true, true, true, false});
}

TEST_CASE_TEMPLATE("GPU: group norm", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const int groups : {1, 2, 6})
    for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh})
      check_layers<Real>(*gpu_device,
                         {Convolution{.channels = 6, .kernel = 3},
                          GroupNorm{.groups = groups, .activation = activation}},
                         kColour);
  check_layers<Real>(*gpu_device,
                     {GroupNorm{.groups = 3}, Convolution{.channels = 20, .kernel = 2},
                      GroupNorm{.groups = 5, .activation = Activation::relu}, MaxPool{.size = 2}},
                     kColour);
}

TEST_CASE_TEMPLATE("GPU: operations on each position", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const Activation activation : {Activation::none, Activation::gelu})
    for (const int units : {5, 300})
      check_layers<Real>(
          *gpu_device,
          {Dense{.units = units, .activation = activation, .per_position = true}, LayerNorm{},
           Dense{.units = 4, .activation = Activation::tanh, .per_position = true}},
          kColour);
  check_layers<Real>(*gpu_device, {PositionEmbedding{}, Activate{.activation = Activation::gelu}},
                     kColour);
  check_layers<Real>(*gpu_device, {Activate{.activation = Activation::relu}, PositionEmbedding{}},
                     kColour, 600);
  // The last operation, whose bias gets a gradient from each position.
  check_parity<Real>(*gpu_device,
                     chain({Dense{.units = 1, .per_position = true}}, Loss::softmax_cross_entropy),
                     {.channels = 3, .width = 4, .classes = 4}, {}, {5, 3}, 2);
}

TEST_CASE_TEMPLATE("GPU: average-pool", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const int size : {0, 1, 2, 3}) {
    check_layers<Real>(
        *gpu_device,
        {Convolution{.channels = 3, .kernel = 3, .padding = 1, .activation = Activation::tanh},
         AveragePool{.size = size}},
        kImage);
    check_layers<Real>(*gpu_device, {AveragePool{.size = size}}, kColour);
  }
}

TEST_CASE_TEMPLATE("GPU: embeddings", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const int vocabulary : {3, 400}) {
    const ModelSpec spec = chain(
        {Reshape{.height = 0, .channels = 1}, Embedding{.vocabulary = vocabulary, .features = 5},
         PositionEmbedding{}, Dense{.units = 3}},
        Loss::softmax_cross_entropy);
    Samples samples(kColour, 40);
    for (std::size_t i = 0; i < samples.features.size(); ++i)
      samples.features[i] = static_cast<float>(i * 7 % 3);
    check_parity_on<Real>(*gpu_device, spec, kColour, samples, {}, {5, 1, 3}, 4);
  }
}

TEST_CASE_TEMPLATE("GPU: attention", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const int heads : {1, 2, 4})
    for (const bool causal : {false, true})
      check_layers<Real>(*gpu_device,
                         {Dense{.units = 24, .activation = Activation::tanh, .per_position = true},
                          Attention{.heads = heads, .causal = causal}},
                         kColour);
  check_layers<Real>(*gpu_device, {Attention{.heads = 1}}, kColour);
}

TEST_CASE_TEMPLATE("GPU: random graphs", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    check_parity<Real>(*gpu_device, RandomGraph(seed).spec(), kSmallImage, {}, {3, 1}, 3, 10);
  }
}

TEST_CASE_TEMPLATE("GPU: squared error", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  const ModelContext data{.width = 7};
  check_parity<Real>(*gpu_device, chain({Dense{.units = 1}}, Loss::squared_error), data, {},
                     {11, 2}, 3);
  check_parity<Real>(
      *gpu_device,
      chain({Dense{.units = 6, .activation = Activation::tanh}, Dense{.units = 1, .bias = false}},
            Loss::squared_error),
      data, {}, {4}, 2);
}

TEST_CASE_TEMPLATE("GPU: every model's gradient", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  using Ints = std::vector<std::int64_t>;
  constexpr ModelContext digits{.channels = 1, .height = 8, .width = 8, .classes = 10},
      regression{.width = 12};
  for (const ModelKind& kind : models::catalog()) {
    CAPTURE(kind.name);
    if (kind.needs_values) continue;  // its operators have tests of their own
    const bool regresses = !kind.make(digits, {}).ok();
    const ModelContext data = regresses ? regression : digits;
    for (const gpu::Pass what : {gpu::Pass::gradient, gpu::Pass::evaluate})
      check_parity<Real>(*gpu_device, model(kind.name, data), data, {.pass = what}, {8, 32}, 3);
  }
  const ModelSpec deep =
      model("mlp", digits, {{"hidden", Ints{30, 20}}, {"activation", std::string("tanh")}});
  check_parity<Real>(*gpu_device, deep, digits, {}, {4}, 2);
  const ModelContext colour{.channels = 3, .height = 6, .width = 7, .classes = 3};
  const ModelSpec small =
      model("cnn", colour, {{"channels", Ints{6}}, {"groups", std::int64_t{3}}});
  check_parity<Real>(*gpu_device, small, colour, {}, {2}, 2);
}

TEST_CASE_TEMPLATE("GPU: many peers are one batch", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  check_parity<Real>(*gpu_device, model("softmax", kVector), kVector, {}, {4}, 300);
  const ModelSpec mlp =
      chain({Dense{.units = 5, .activation = Activation::tanh}, Dense{.units = 3}},
            Loss::softmax_cross_entropy);
  check_parity<Real>(*gpu_device, mlp, kVector, {.pass = gpu::Pass::evaluate}, {3, 7, 1, 2, 6},
                     100);
}

TEST_CASE("GPU: extreme outputs stay finite, NaN stays NaN, and stays with its peer") {
  GOSSAMER_GPU(gpu_device);
  const CompiledModel network = compiled(chain({Dense{.units = 2}}, Loss::softmax_cross_entropy),
                                         {.width = 1, .classes = 2}, 1);
  const Held<float> features(*gpu_device, std::vector<float>{1000, NAN, 1});
  const Held<std::int32_t> labels(*gpu_device, std::vector<std::int32_t>{1, 1, 0});
  const Held<float> row(*gpu_device, std::vector<float>{1, -1, 0, 0});
  const Held<double> losses(*gpu_device, std::vector<double>(3));
  std::vector<Held<float>> gradients;
  std::vector<gpu::Job<float>> jobs;
  const std::uint32_t samples[] = {0, 1, 2};
  for (std::size_t p = 0; p < 3; ++p) {
    gradients.emplace_back(*gpu_device, 4);
    jobs.push_back({.parameters = row.get(),
                    .gradient = gradients[p].get(),
                    .samples = samples + p,
                    .batch = 1,
                    .loss = losses.get() + p});
  }
  const gpu::Task task{.program = &network.program(),
                       .tables = {{features.get(), labels.get(), nullptr}}};
  gpu_device->train(task, gpu::Pass::gradient, std::span<const gpu::Job<float>>(jobs));
  const auto all = losses.values();
  CHECK(all[0] == doctest::Approx(2000));
  CHECK(gradients[0].values() == std::vector<float>{1000, -1000, 1, -1});
  CHECK(std::isnan(all[1]));
  CHECK(all[2] == doctest::Approx(std::log1p(std::exp(-2.0))));
  for (const float value : gradients[2].values()) CHECK(std::isfinite(value));
}
