// Every operator beside those of layers_test.cpp: its gradient held to central differences in
// double, small values by hand, and inputs that do not fit.
#include "tests/text_test_util.hpp"
#include "tests/train/compiled_model_test_util.hpp"
#include "tests/train/graph_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr ModelContext kSequence{.channels = 1, .height = 5, .width = 4, .classes = 3};

void check_chain(std::vector<Operator> operators, const ModelContext& data, int batch = 3) {
  operators.push_back(Dense{.units = data.classes});
  check_gradient(Bench(chain(std::move(operators), Loss::softmax_cross_entropy), data, batch));
}

std::string operators_refusal(std::vector<Operator> operators,
                              const ModelContext& data = kSmallImage) {
  operators.push_back(Dense{.units = data.classes});
  const auto model =
      CompiledModel::compile(chain(std::move(operators), Loss::softmax_cross_entropy), data, 2);
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().kind == ErrorKind::invalid);
  return model.error().message;
}

}  // namespace

TEST_CASE("dense operations on each position, with every activation") {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::tanh, Activation::gelu})
    for (const bool bias : {true, false})
      check_chain({Dense{.units = 5, .activation = activation, .bias = bias, .per_position = true},
                   Dense{.units = 4, .activation = Activation::tanh, .per_position = true}},
                  kSmallImage);
}

TEST_CASE("activations alone, and behind a bias of every value") {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::tanh, Activation::gelu}) {
    check_chain({Dense{.units = 11}, Activate{.activation = activation}}, kSmallImage);
    check_chain({PositionEmbedding{}, Activate{.activation = activation}}, kSmallImage);
  }
  check_chain({Convolution{.channels = 3, .activation = Activation::gelu},
               GroupNorm{.groups = 3, .activation = Activation::gelu}},
              kSmallImage);
}

TEST_CASE("average-pool: windows that do not fill, and all positions") {
  for (const int size : {0, 1, 2, 3})
    check_chain(
        {Convolution{.channels = 3, .kernel = 3, .padding = 1, .activation = Activation::tanh},
         AveragePool{.size = size}},
        kSmallImage);
  check_chain({AveragePool{.size = 2}}, kSmallImage);
}

TEST_CASE("layer norm of each position") {
  check_chain({Dense{.units = 6, .per_position = true}, LayerNorm{}}, kSmallImage);
  check_chain({LayerNorm{}, Dense{.units = 6, .activation = Activation::tanh}}, kSmallImage);
}

TEST_CASE("embeddings: tokens become rows of the table") {
  ModelContext data{.width = 6, .classes = 3};
  Bench bench(
      chain({Embedding{.vocabulary = 5, .features = 4}, PositionEmbedding{}, Dense{.units = 3}},
            Loss::softmax_cross_entropy),
      data, 4);
  for (std::size_t i = 0; i < bench.table.features.size(); ++i)
    bench.table.features[i] = static_cast<float>(i * 3 % 5);
  check_gradient(bench);
  // Rows of the table that no token names have no gradient, and unknown tokens make the loss NaN.
  std::ranges::fill(bench.table.features, 2.0F);
  const auto row = bench.parameters<double>();
  const auto gradient = bench.gradient(row);
  for (std::size_t v = 0; v < 5; ++v)
    for (std::size_t f = 0; f < 4; ++f) CHECK((gradient[v * 4 + f] != 0) == (v == 2));
  for (const float unknown : {-1.0F, 5.0F, 1e30F, NAN}) {
    bench.table.features[3] = unknown;
    CHECK(std::isnan(bench.loss(row)));
  }
}

TEST_CASE("attention: one head and several, causal and not, one position") {
  for (const int heads : {1, 2, 4})
    for (const bool causal : {false, true}) {
      CAPTURE(heads);
      check_chain({Reshape{.height = 5, .width = 1, .channels = 4},
                   Dense{.units = 24, .activation = Activation::tanh, .per_position = true},
                   Attention{.heads = heads, .causal = causal}},
                  kSequence);
    }
  check_chain({Dense{.units = 6, .activation = Activation::tanh}, Attention{.heads = 1}},
              kSequence);
}

TEST_CASE("attention by hand: equal keys give the mean of the values, causal of those before") {
  // Two positions of one feature each: queries and keys 0, values 2 and 6.
  const ModelContext data{.channels = 3, .height = 2, .width = 1};
  for (const bool causal : {false, true}) {
    Bench bench(chain({Attention{.heads = 1, .causal = causal}, Dense{.units = 1, .bias = false}},
                      Loss::squared_error),
                data, 1);
    bench.table.features = {0, 0, 0, 0, 2, 6};  // [channels, positions]
    bench.table.targets = {0};
    const double first = causal ? 2 : 4, second = 4;
    CHECK(bench.loss<double>({1, 0}) == 0.5 * first * first);
    CHECK(bench.loss<double>({0, 1}) == 0.5 * second * second);
  }
}

TEST_CASE("sums and concatenations, of an operation with itself too") {
  TestGraph graph;
  const int stem = graph.add("stem", Convolution{.channels = 4, .padding = 1}, {kSampleInput});
  const int branch =
      graph.add("branch", Convolution{.channels = 4, .padding = 1, .activation = Activation::tanh});
  const int sum = graph.add("sum", Add{.activation = Activation::relu}, {stem, branch, stem});
  const int twice = graph.add("twice", Add{.activation = Activation::gelu}, {sum, sum});
  graph.add("both", Concatenate{}, {twice, kSampleInput, stem});
  graph.add("out", Dense{.units = 3});
  check_gradient(Bench(graph.spec, kSmallImage, 3));
}

TEST_CASE("reshapes keep the values in their order, whatever takes them") {
  TestGraph graph;
  const int flat = graph.add("flat", Reshape{.channels = 0}, {kSampleInput});
  const int first = graph.add("first", Dense{.units = 12, .activation = Activation::tanh}, {flat});
  const int grid = graph.add("grid", Reshape{.height = 2, .width = 0, .channels = 2}, {first});
  const int seen = graph.add("seen", Convolution{.channels = 2, .padding = 1}, {grid});
  const int back = graph.add("back", Reshape{.channels = 12}, {seen});
  graph.add("sum", Add{}, {back, first});
  graph.add("out", Dense{.units = 3});
  graph.add("shape", Reshape{.height = 1, .width = 3, .channels = 1});
  check_gradient(Bench(graph.spec, kSmallImage, 3));
  CHECK(Bench(graph.spec, kSmallImage, 1).network.operations()[2].output == Shape{2, 3, 2});
}

TEST_CASE("operations run in an order in which each follows its inputs") {
  TestGraph graph;
  graph.add("out", Dense{.units = 3}, {2});
  graph.add("right", Dense{.units = 4, .activation = Activation::tanh}, {kSampleInput});
  graph.add("sum", Add{}, {3, 1});
  graph.add("left", Dense{.units = 4, .activation = Activation::relu}, {kSampleInput});
  const Bench bench(graph.spec, kSmallImage, 2);
  std::vector<std::string> names;
  for (const CompiledOperation& operation : bench.network.operations())
    names.push_back(operation.name);
  CHECK(names == std::vector<std::string>{"right", "left", "sum", "out"});
  CHECK(bench.network.operations()[2].inputs == std::vector<int>{1, 0});
  check_gradient(bench);
}

TEST_CASE("graphs that are none: a cycle, two outputs, no input, unknown operations") {
  const auto refused = [](const TestGraph& graph) {
    const auto model = CompiledModel::compile(graph.spec, kSmallImage, 2);
    REQUIRE_FALSE(model.ok());
    return model.error().message;
  };
  TestGraph cycle;
  cycle.add("a", Dense{.units = 3}, {kSampleInput});
  cycle.add("b", Add{}, {0, 3});
  cycle.add("c", Activate{}, {1});
  cycle.add("d", Activate{}, {2});
  CHECK(contains(refused(cycle), "the operations 'b' → 'c' → 'd' → 'b' are a cycle"));
  TestGraph self;
  self.add("a", Activate{}, {0});
  CHECK(contains(refused(self), "'a' → 'a'"));
  TestGraph two;
  two.add("a", Dense{.units = 3}, {kSampleInput});
  two.add("b", Dense{.units = 3}, {kSampleInput});
  CHECK(contains(refused(two), "no operation takes the output of 'a' and of 'b'"));
  TestGraph unknown;
  unknown.add("a", Dense{.units = 3}, {7});
  CHECK(contains(refused(unknown), "'a' takes operation 7"));
  TestGraph one_input;
  one_input.add("a", Add{}, {kSampleInput});
  CHECK(contains(refused(one_input), "'a' has 1 inputs, but add takes two or more"));
  TestGraph without_parameters;
  without_parameters.add("a", AveragePool{}, {kSampleInput});
  without_parameters.add("b", Concatenate{}, {0, 0});
  const auto model = CompiledModel::compile(
      without_parameters.spec, {.channels = 1, .height = 2, .width = 2, .classes = 2}, 1);
  REQUIRE_FALSE(model.ok());
  CHECK(contains(model.error().message, "no operation has parameters"));
}

TEST_CASE("gelu of huge values has a finite gradient") {
  const ModelContext data{.width = 3};
  Bench bench(chain({Activate{.activation = Activation::gelu}, PositionEmbedding{},
                     Activate{.activation = Activation::gelu}, Dense{.units = 1}},
                    Loss::squared_error),
              data, 1);
  for (const float huge : {1e4F, 1e18F}) {
    bench.table.features = {huge, -huge, 0};
    for (const float value : bench.gradient(std::vector<float>(7, 1e-19F)))
      CHECK(std::isfinite(value));
  }
}

TEST_CASE("operators that do not fit their inputs are refused with the reason") {
  CHECK(contains(operators_refusal({Dense{.units = 4}, Embedding{.vocabulary = 3, .features = 2}}),
                 "'1.embedding': its input are no tokens"));
  CHECK(contains(operators_refusal({Dense{.units = 4}, GroupNorm{.groups = 4}}),
                 "the norm of one value"));
  CHECK(contains(operators_refusal({Dense{.units = 140'000}, Reshape{.width = 2, .channels = 0},
                                    GroupNorm{.groups = 70'000}}),
                 "70000 groups are too many"));
  CHECK(contains(operators_refusal({Dense{.units = 4'000'000}, LayerNorm{}}), "for a norm"));
  // As outputs of a convolution, and as inputs.
  for (const Operator& first : {Operator(Convolution{.channels = 4'000'001, .kernel = 1}),
                                Operator(Dense{.units = 4'000'001, .per_position = true})})
    CHECK(contains(operators_refusal({first, Convolution{.channels = 1, .kernel = 1}}),
                   "4000001 channels are too many for a convolution; the most are 4000000"));
  CHECK(contains(operators_refusal({AveragePool{.size = 5}}), "'0.pool': a 5 × 5 pool"));
  CHECK(contains(operators_refusal({Dense{.units = 4}, LayerNorm{}, Attention{.heads = 1}}),
                 "'2.attention': the 4 channels"));
  CHECK(contains(operators_refusal({LayerNorm{}}, kSequence), "one channel"));
  CHECK(contains(operators_refusal({Reshape{.height = 7, .channels = 0}}), "48 values"));
  CHECK(contains(operators_refusal({Reshape{.height = 0, .width = 0, .channels = 2}}),
                 "at most one"));
  CHECK(contains(
      operators_refusal({Reshape{.height = 2'000'000'000, .width = 2'000'000'000, .channels = 2}}),
      "48 values"));
  CHECK(contains(operators_refusal({Embedding{.vocabulary = 0, .features = 4}}), "vocabulary"));
  CHECK(contains(
      operators_refusal(
          {Dense{.units = 2'000'000'000, .activation = Activation::gelu, .per_position = true}}),
      "too large"));
  TestGraph unequal;
  const int a = unequal.add("a", Dense{.units = 4}, {kSampleInput});
  unequal.add("b", Add{}, {a, kSampleInput});
  auto model = CompiledModel::compile(unequal.spec, kSmallImage, 1);
  REQUIRE_FALSE(model.ok());
  CHECK(contains(model.error().message, "'b': it adds tensors of 4 and of 4 × 6 × 2"));
  unequal.spec.operations[1].op = Concatenate{};
  model = CompiledModel::compile(unequal.spec, kSmallImage, 1);
  REQUIRE_FALSE(model.ok());
  CHECK(contains(model.error().message, "heights"));
}

// Coordinates are drawn: central differences of all of them would take minutes.
TEST_CASE("200 random graphs: gradients are those of the loss") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Bench bench(RandomGraph(seed).spec(), kSmallImage, 2);
    std::vector<double> row = bench.parameters<double>();
    const std::vector<double> gradient = bench.gradient(row);
    RandomStream random(seed, kNoPeer, Purpose::test, 3);
    // Along a random direction, and along single coordinates.
    std::vector<double> direction(row.size());
    for (double& value : direction) value = random.next_normal();
    const auto along = [&](const std::vector<double>& to) {
      constexpr double h = 1e-6;
      std::vector<double> above = row, below = row;
      for (std::size_t i = 0; i < row.size(); ++i) above[i] += h * to[i], below[i] -= h * to[i];
      return (bench.loss(above) - bench.loss(below)) / (2 * h);
    };
    double expected = 0, size = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      expected += gradient[i] * direction[i];
      size += gradient[i] * gradient[i];
    }
    size = std::sqrt(size);
    CHECK(std::abs(along(direction) - expected) < 1e-6 * (size + std::abs(expected)));
    for (int k = 0; k < 10; ++k) {
      const auto i = random.below(static_cast<std::uint32_t>(row.size()));
      std::vector<double> unit(row.size());
      unit[i] = 1;
      CHECK(std::abs(along(unit) - gradient[i]) < 1e-6 * size);
    }
    CHECK(relative_error(bench.gradient(bench.parameters<float>()), gradient) < 1e-3);
  }
}

TEST_CASE("gradients lie in few buffers: a chain of equal widths needs two") {
  const std::vector<Operator> layer{Dense{.units = 64, .activation = Activation::tanh}};
  std::vector<Operator> operators;
  for (int i = 0; i < 9; ++i) operators.push_back(layer[0]);
  operators.push_back(Dense{.units = 3});
  const Bench bench(chain(operators, Loss::softmax_cross_entropy), kSmallImage, 4);
  CHECK(bench.network.gradient_values() == 2 * 64 * 4);
}

TEST_CASE("costs: parameters and floating-point operations of each operation") {
  const Bench bench(
      chain({Convolution{.channels = 5, .kernel = 3, .padding = 1},
             Dense{.units = 7, .per_position = true}, AveragePool{}, Dense{.units = 3}},
            Loss::softmax_cross_entropy),
      kSmallImage, 2);
  const auto& operations = bench.network.operations();
  CHECK(operations[0].parameters == 9 * 2 * 5 + 5);
  CHECK(operations[0].forward_flops == 2.0 * 9 * 2 * 5 * 24);
  CHECK(operations[0].backward_flops == operations[0].forward_flops);  // no gradient of samples
  CHECK(operations[1].forward_flops == 2.0 * 24 * 5 * 7);
  CHECK(operations[1].backward_flops == 2 * operations[1].forward_flops);
  CHECK(operations[2].output == Shape{.channels = 7});
  CHECK(operations[3].parameters == 7 * 3 + 3);
}

TEST_CASE("sizes that no machine has are refused, and not computed modulo 2⁶⁴") {
  const ModelContext one_pixel{.channels = 1, .height = 1, .width = 1, .classes = 3};
  CHECK(contains(operators_refusal({Dense{.units = 9},
                                    Convolution{.channels = 11, .kernel = 10'000, .padding = 5000}},
                                   one_pixel),
                 "from 9 to 11 channels is too large"));
  const ModelContext pixel{.channels = 1, .height = 4, .width = 4, .classes = 3};
  CHECK(contains(
      operators_refusal(
          {Convolution{.channels = 10'000'000, .kernel = 10'000'000, .padding = 4'999'999}}, pixel),
      "padding 4999999 is too large"));
  CHECK(contains(operators_refusal({Dense{.units = 10'000}, Dense{.units = 2'000'000'000}}, pixel),
                 "10000 × 2000000000 parameters are too many"));
  CHECK(contains(
      operators_refusal({Dense{.units = 300'000}, Reshape{.height = 0, .width = 1, .channels = 3},
                         Attention{.heads = 1}},
                        pixel),
      "among 100000 positions is too large"));
}
