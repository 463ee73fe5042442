// Models cut inside layers: the bits of the whole model, alone and with stages, which layers are
// cut together, what each worker holds, and what is refused.
#include <algorithm>
#include <numeric>

#include "tests/text_test_util.hpp"
#include "tests/train/split_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr ModelContext kWords{.channels = 4, .height = 5, .width = 1, .classes = 3};

ModelSpec mlp(std::vector<int> widths, Activation activation = Activation::tanh) {
  std::vector<Operator> operators;
  for (const int width : widths)
    operators.push_back(Dense{.units = width, .activation = activation});
  operators.push_back(Dense{.units = 3});
  return chain(std::move(operators), Loss::softmax_cross_entropy);
}

/// Convolutions of several blocks of channels, the last one not full, and what is cut with them.
ModelSpec convolutions() {
  return chain({Convolution{.channels = 48, .padding = 1, .activation = Activation::relu},
                GroupNorm{.groups = 3, .activation = Activation::relu}, MaxPool{},
                Convolution{.channels = 40, .kernel = 2, .padding = 1, .bias = false},
                Activate{.activation = Activation::gelu},
                Convolution{.channels = 50, .kernel = 1, .activation = Activation::tanh},
                AveragePool{.size = 2}, Dense{.units = 3}},
               Loss::softmax_cross_entropy);
}

/// A transformer block: attention by heads, a residual sum and norm that are whole, and an MLP at
/// each position.
ModelSpec transformer(int heads) {
  TestGraph graph;
  const int in = graph.add("in", Dense{.units = 8, .per_position = true}, {kSampleInput});
  graph.add("places", PositionEmbedding{});
  const int placed = graph.add("norm", LayerNorm{});
  graph.add("heads", Dense{.units = 24, .per_position = true});
  graph.add("attention", Attention{.heads = heads, .causal = true});
  const int attended = graph.add("attended", Dense{.units = 8, .per_position = true});
  const int sum = graph.add("sum", Add{}, {in, attended, placed});
  graph.add("wide", Dense{.units = 12, .activation = Activation::gelu, .per_position = true});
  const int narrow = graph.add("narrow", Dense{.units = 8, .per_position = true});
  graph.add("both", Add{}, {sum, narrow});
  graph.add("mean", AveragePool{});
  graph.add("out", Dense{.units = 3});
  return graph.spec;
}

SplitModel sliced(const ModelSpec& spec, const ModelContext& data, const SplitOptions& options) {
  return split_of(Bench::compiled(spec, data, 4), options, 4);
}

void check_slices(const ModelSpec& spec, const ModelContext& data, int slices) {
  CAPTURE(slices);
  Bench bench(spec, data, 7);
  const int most = std::min(3, parameterised(bench.network));
  for (int layers = 1; layers <= most; ++layers)
    for (const int microbatches : {0, 3}) {
      const SplitOptions options{
          .layers = layers, .parameters = slices, .microbatches = microbatches};
      if (!SplitModel::make(bench.network, options, 7).ok()) continue;
      CAPTURE(layers);
      check_same_gradient<float>(bench, options);
      check_same_gradient<double>(bench, options);
    }
  CHECK(SplitModel::make(bench.network, {.parameters = slices}, 7).ok());
}

}  // namespace

TEST_CASE("models cut inside layers have the gradients of the whole ones to the bit") {
  for (const int slices : {2, 3}) {
    check_slices(mlp({7, 9, 5}), kSmallImage, slices);
    check_slices(mlp({6, 4}, Activation::gelu), kSmallImage, slices);
    check_slices(convolutions(), {.channels = 2, .height = 8, .width = 6, .classes = 3}, slices);
    check_slices(transformer(4), kWords, slices);
  }
  check_slices(transformer(1), kWords, 4);
}

TEST_CASE("random graphs, cut inside layers and into stages, to the bit") {
  int cut = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed, false);
    RandomStream random(seed, kNoPeer, Purpose::test, 10);
    Bench bench = random_bench(graph, random);
    for (const int slices : {2, 3}) {
      const SplitOptions options{
          .layers = 1 + static_cast<int>(random.below(std::min(
                            3U, static_cast<std::uint32_t>(parameterised(bench.network))))),
          .parameters = slices,
          .microbatches = static_cast<int>(random.below(5))};
      if (!SplitModel::make(bench.network, options, bench.batch).ok()) continue;
      ++cut;
      check_same_gradient<float>(bench, options);
    }
  }
  CHECK(cut >= 60);
}

TEST_CASE("each value of the row is one worker's, and what it begins with is that of the model") {
  for (const ModelSpec& spec : {mlp({7, 9, 5}), transformer(2)}) {
    const CompiledModel model = Bench::compiled(spec, kWords, 4);
    const SplitModel split = split_of(model, {.layers = 2, .parameters = 2}, 4);
    REQUIRE(split.parts().size() == 4);
    std::vector<double> whole(model.parameters()), numbers(whole.size()), again(whole.size());
    std::iota(numbers.begin(), numbers.end(), 1.0);
    model.initialise<double>(5, kNoPeer, whole);
    std::size_t values = 0;
    for (const ModelPart& part : split.parts()) {
      CHECK(part.parameters > 0);
      values += part.parameters;
      std::vector<double> own(part.parameters), begun(part.parameters);
      take_part<double>(part, numbers, own.data());
      put_part<double>(part, own.data(), again);
      take_part<double>(part, whole, own.data());
      initialise_part(model, part, 5, kNoPeer, begun.data());
      CHECK(begun == own);
      take_part<double>(part, numbers, own.data());
      CHECK(std::ranges::is_sorted(own));  // gossip::RowPart relies on it
      // Tensors lie one behind the other in the worker's row.
      std::size_t offset = 0;
      for (const ParameterBlock& block : part.blocks) {
        CHECK(block.offset == offset);
        std::size_t length = 1;
        for (const int extent : block.shape) length *= static_cast<std::size_t>(extent);
        CHECK(block.length == length);
        offset += length;
      }
      CHECK(offset == part.parameters);
    }
    CHECK(values == model.parameters());
    CHECK(again == numbers);
  }
}

TEST_CASE("slices: outputs are put together in slice 0, gradients go on from slice to slice") {
  const SplitModel split = sliced(mlp({8, 6}), kSmallImage, {.parameters = 2});
  // Three segments for each of three layers: slice 1, slice 0, and the channels of both.
  REQUIRE(split.segments().size() == 9);
  for (int s = 0; s < 9; ++s)
    CHECK(split.segments()[static_cast<std::size_t>(s)].worker == (s % 3 == 0 ? 1 : 0));
  CHECK(texts_of(split.outputs()) ==
        std::vector<std::string>{"02:4", "23:8", "35:3", "56:6", "68:2"});
  // From the last layer: slice 0 goes first, slice 1 goes on, and its sum is that of the layer.
  CHECK(texts_of(split.gradients()) ==
        std::vector<std::string>{"86:2", "76:6", "65:6", "53:3", "43:8", "32:8", "20:4"});
  CHECK(split.last_worker() == 0);
  const CompiledModel whole = Bench::compiled(mlp({8, 6}), kSmallImage, 4);
  double forward = 0, backward = 0;
  for (const ModelPart& part : split.parts())
    forward += part.forward_flops, backward += part.backward_flops;
  double all_forward = 0, all_backward = 0;
  for (const CompiledOperation& operation : whole.operations())
    all_forward += operation.forward_flops, all_backward += operation.backward_flops;
  CHECK(forward == doctest::Approx(all_forward));
  CHECK(backward == doctest::Approx(all_backward));
}

TEST_CASE("what computes channel by channel or head by head is cut with the layer before it") {
  // Convolution, norm, pool: one segment of each slice, then the next layers.
  const ModelContext image{.channels = 2, .height = 8, .width = 6, .classes = 3};
  CHECK(sliced(convolutions(), image, {.parameters = 2}).segments().size() == 12);
  // One group of all channels cannot be cut, and stays with slice 0.
  const auto with_groups = [&](int groups) {
    return sliced(chain({Convolution{.channels = 32}, GroupNorm{.groups = groups}, MaxPool{},
                         Dense{.units = 3}},
                        Loss::softmax_cross_entropy),
                  image, {.parameters = 2})
        .outputs()[0]
        .values;
  };
  CHECK(with_groups(2) == 3 * 2 * 16);  // behind the pool
  CHECK(with_groups(1) == 6 * 4 * 16);  // behind the convolution
  // Heads: worker 1 has half of the channels of queries, keys and values, and sends its outputs.
  const SplitModel split = sliced(transformer(2), kWords, {.parameters = 2});
  const std::vector<std::string> texts = texts_of(split.outputs());
  CHECK(std::ranges::count(texts, "35:20") == 1);  // 5 positions of 4 features
  // What another operation takes too is put together before: the dense layer alone is cut.
  TestGraph graph;
  const int stem = graph.add("stem", Dense{.units = 8}, {kSampleInput});
  const int bent = graph.add("bent", Activate{.activation = Activation::tanh}, {stem});
  graph.add("sum", Add{}, {stem, bent});
  graph.add("out", Dense{.units = 3});
  Bench bench(graph.spec, kSmallImage, 5);
  check_same_gradient<float>(bench, {.parameters = 2});
  // A reshape makes other channels of a dense layer's units: the pool is whole.
  const ModelSpec reshaped =
      chain({Dense{.units = 24}, Reshape{.height = 4, .width = 3, .channels = 2}, MaxPool{},
             Dense{.units = 3}},
            Loss::softmax_cross_entropy);
  Bench pooled(reshaped, kSmallImage, 5);
  check_same_gradient<float>(pooled, {.parameters = 2});
  CHECK(sliced(reshaped, kSmallImage, {.parameters = 2}).outputs()[0].values == 12);
}

TEST_CASE("two slices take about half of the memory of the whole model each") {
  const int batch = 32;
  const ModelContext data{.width = 256, .classes = 10};
  std::vector<Operator> operators(4, Dense{.units = 256, .activation = Activation::relu});
  operators.push_back(Dense{.units = 10});
  const CompiledModel model =
      Bench::compiled(chain(std::move(operators), Loss::softmax_cross_entropy), data, batch);
  const SplitModel split = split_of(model, {.parameters = 2}, batch);
  for (const ModelPart& part : split.parts()) {
    CHECK(static_cast<double>(part.parameters) ==
          doctest::Approx(static_cast<double>(model.parameters()) / 2).epsilon(0.01));
    // Each worker has the inputs of its layers whole, and worker 0 their outputs too.
    CHECK(static_cast<double>(part.workspace) <=
          1.4 * static_cast<double>(model.program().workspace));
  }
}

TEST_CASE("slices that cannot be are refused with what is wrong") {
  const auto refusal = [](const ModelSpec& spec, const SplitOptions& options) {
    const auto split = SplitModel::make(Bench::compiled(spec, kSmallImage, 4), options, 1);
    REQUIRE_FALSE(split.ok());
    CHECK(split.error().kind == ErrorKind::invalid);
    return split.error().message;
  };
  CHECK(contains(refusal(mlp({2, 3}), {.parameters = 4}),
                 "split.parameters: 4 workers cannot share '0.dense to 2.dense'"));
  CHECK(contains(refusal(mlp({8, 3}), {.layers = 2, .parameters = 4, .cuts = {"1.dense"}}),
                 "split.parameters: 4 workers cannot share '1.dense to 2.dense'"));
  // A convolution is cut between blocks of 16 channels.
  CHECK(contains(refusal(chain({Convolution{.channels = 32}, AveragePool{}, Dense{.units = 3}},
                               Loss::softmax_cross_entropy),
                         {.layers = 2, .parameters = 3, .cuts = {"1.pool"}}),
                 "blocks of 16 channels or heads"));
}
