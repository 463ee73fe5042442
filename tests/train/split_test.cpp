// Models cut by layers: the bits of the whole model for every cut and number of microbatches, the
// choice of cuts, memory, and what is refused.
#include "tests/text_test_util.hpp"
#include "tests/train/split_test_util.hpp"
#include "train/learner.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// An MLP whose hidden layers are equal.
ModelSpec equal_layers(int layers, int width) {
  std::vector<Operator> operators;
  for (int l = 0; l < layers; ++l)
    operators.push_back(Dense{.units = width, .activation = Activation::relu});
  operators.push_back(Dense{.units = 3});
  return chain(std::move(operators), Loss::softmax_cross_entropy);
}

std::string split_refusal(const ModelSpec& spec, const SplitOptions& options) {
  const CompiledModel model = Bench::compiled(spec, kSmallImage, 4);
  const auto split = SplitModel::make(model, options, 1);
  REQUIRE_FALSE(split.ok());
  CHECK(split.error().kind == ErrorKind::invalid);
  return split.error().message;
}

}  // namespace

TEST_CASE("random graphs, cut anywhere, have the gradients of the whole ones to the bit") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed, false);
    RandomStream random(seed, kNoPeer, Purpose::test, 9);
    Bench bench = random_bench(graph, random);
    const int most = parameterised(bench.network);
    for (int layers = 2; layers <= most; ++layers) {
      CAPTURE(layers);
      check_same_gradient<float>(
          bench, {.layers = layers, .microbatches = 1 + static_cast<int>(random.below(9))});
    }
    check_same_gradient<double>(
        bench, {.layers = std::min(3, most), .microbatches = 3, .schedule = "eager_1f1b"});
  }
}

TEST_CASE("a tensor that several later parts take crosses to each, with a gradient for each use") {
  TestGraph graph;
  const int stem =
      graph.add("stem", Dense{.units = 6, .activation = Activation::tanh}, {kSampleInput});
  const int one = graph.add("one", Dense{.units = 6, .activation = Activation::gelu}, {stem});
  const int two = graph.add("two", Add{}, {one, stem});
  const int three = graph.add("three", Dense{.units = 6}, {two});
  const int four = graph.add("four", Add{}, {three, stem, stem});
  const int samples = graph.add("samples", Dense{.units = 6}, {kSampleInput});
  graph.add("five", Add{}, {four, samples, two});
  graph.add("out", Dense{.units = 3});
  Bench bench(graph.spec, kSmallImage, 5);
  const SplitOptions options{.layers = 4, .microbatches = 3, .cuts = {"one", "three", "out"}};
  check_same_gradient<float>(bench, options);
  const SplitModel split = split_of(bench.network, options, 5);
  // stem to the stages of `one` and `three`, `two` to that of `three`, `five` to that of `out`.
  CHECK(texts_of(split.outputs()) == std::vector<std::string>{"01:6", "02:6", "12:6", "23:6"});
  CHECK(texts_of(split.gradients()) ==
        std::vector<std::string>{"32:6", "21:6", "20:6", "20:6", "21:6", "10:6", "10:6"});
  CHECK(split.segments()[2].program.takes_samples);
  CHECK_FALSE(split.segments()[1].program.takes_samples);
  CHECK(split.segments()[3].program.has_loss);
  CHECK_FALSE(split.segments()[2].program.has_loss);
}

TEST_CASE("nothing with parameters before a cut: no gradient crosses back") {
  TestGraph graph;
  graph.add("pool", AveragePool{.size = 2}, {kSampleInput});
  graph.add("bend", Activate{.activation = Activation::tanh});
  graph.add("side", Dense{.units = 4}, {kSampleInput});
  const int hidden = graph.add("hidden", Dense{.units = 4}, {1});
  graph.add("join", Add{}, {hidden, 2});
  graph.add("out", Dense{.units = 3});
  Bench bench(graph.spec, kSmallImage, 4);
  const SplitOptions options{.layers = 2, .microbatches = 2, .cuts = {"hidden"}};
  check_same_gradient<float>(bench, options);
  const SplitModel split = split_of(bench.network, options, 4);
  CHECK(texts_of(split.outputs()) == std::vector<std::string>{"01:12", "01:4"});
  CHECK(texts_of(split.gradients()) == std::vector<std::string>{"10:4"});
}

TEST_CASE("cuts are chosen so that the largest part is least, then what crosses") {
  const CompiledModel model = Bench::compiled(equal_layers(8, 16), {.width = 16, .classes = 3}, 4);
  const SplitModel split = split_of(model, {.layers = 4}, 4);
  for (const ModelPart& part : split.parts()) CHECK(part.parameters > 0);
  CHECK(split.parts()[1].first == "2.dense");
  CHECK(split.parts()[1].last == "3.dense");
  CHECK(split.parts()[3].last == "8.dense");
  // Two narrow layers between two wide ones: the cut is where least crosses.
  const CompiledModel waist =
      Bench::compiled(chain({Dense{.units = 30, .activation = Activation::relu},
                             Dense{.units = 2, .activation = Activation::relu},
                             Dense{.units = 30, .activation = Activation::relu}, Dense{.units = 3}},
                            Loss::softmax_cross_entropy),
                      {.width = 30, .classes = 3}, 4);
  CHECK(split_of(waist, {.layers = 2}, 4).outputs()[0].values <= 30);
  // Parts lie one behind the other in the row, without gaps.
  std::size_t begin = 0;
  for (const ModelPart& part : split.parts()) {
    CHECK(part.pieces.front().whole == begin);
    begin += part.parameters;
  }
  CHECK(begin == model.parameters());
}

TEST_CASE("four workers of equal parts take at most 1.15 quarters of the memory of a whole model") {
  // Rows of parameters, gradient and momentum, and the workspaces of all microbatches in flight.
  const int batch = 64;
  const ModelContext data{.width = 256, .classes = 10};
  std::vector<Operator> operators(4, Dense{.units = 256, .activation = Activation::relu});
  operators.push_back(Dense{.units = 10});
  const CompiledModel model =
      Bench::compiled(chain(std::move(operators), Loss::softmax_cross_entropy), data, batch);
  const SplitOptions options{.layers = 4};
  const SplitModel split = split_of(model, options, batch);
  const auto bytes = [](std::size_t parameters, std::size_t workspace) {
    return static_cast<double>(3 * parameters * sizeof(float) + workspace);
  };
  const double whole = bytes(model.parameters(), model.program().workspace * sizeof(float));
  for (int p = 0; p < 4; ++p) {
    const double own =
        bytes(split.parts()[static_cast<std::size_t>(p)].parameters,
              PipelinedGradient<float>::worker_bytes(split, p, options.microbatches_of(batch)));
    CAPTURE(p);
    CHECK(own <= 1.15 * whole / 4);
  }
}

TEST_CASE("what a stage does after it has sent is the gradient of its first layer's parameters") {
  const std::vector<Operator> operators(4, Dense{.units = 16});
  const CompiledModel model = Bench::compiled(chain(operators, Loss::softmax_cross_entropy),
                                              {.width = 16, .classes = 16}, 8);
  for (const bool overlap : {true, false}) {
    CAPTURE(overlap);
    const PipelineCosts costs =
        pipeline_costs(split_of(model, {.layers = 4, .overlap = overlap}, 8), 4, 8, sizeof(float));
    REQUIRE(costs.segments.size() == 4);
    for (const PipelineCosts::Segment& segment : costs.segments) {
      const bool has_one_before = segment.stage > 0;
      CHECK(segment.after_sending == (overlap && has_one_before ? segment.forward : 0));
      CHECK(segment.after_begun == 0);
      if (has_one_before) CHECK(segment.backward == doctest::Approx(2 * segment.forward));
    }
  }
}

TEST_CASE("cuts that cannot be made are refused with what is wrong") {
  const ModelSpec spec = equal_layers(3, 5);
  CHECK(contains(split_refusal(spec, {.layers = 5}),
                 "5 stages cannot share a model of which 4 operations have parameters"));
  CHECK(contains(split_refusal(spec, {.layers = 3, .cuts = {"1.dense"}}),
                 "1 names cut a model into 2 stages, and split.layers is 3"));
  CHECK(contains(split_refusal(spec, {.layers = 2, .cuts = {"1.dens"}}),
                 "no operation '1.dens' (did you mean '1.dense'?)"));
  CHECK(contains(split_refusal(spec, {.layers = 3, .cuts = {"2.dense", "1.dense"}}),
                 "'1.dense' does not come after '2.dense'"));
  CHECK(contains(split_refusal(spec, {.layers = 2, .cuts = {"0.dense"}}),
                 "'0.dense' is the model's first operation"));
  TestGraph graph;
  graph.add("one", Dense{.units = 4}, {kSampleInput});
  graph.add("bend", Activate{});
  graph.add("two", Dense{.units = 4});
  graph.add("three", Dense{.units = 3});
  CHECK(contains(split_refusal(graph.spec, {.layers = 3, .cuts = {"bend", "two"}}),
                 "the stage that begins with 'bend' has no parameters"));
}

TEST_CASE("microbatches cover a batch, in order and of nearly equal sizes") {
  for (int batch = 1; batch <= 40; ++batch)
    for (const int wanted : {0, 1, 3, 7, 64}) {
      const SplitOptions options{.layers = 2, .microbatches = wanted};
      const int count = options.microbatches_of(batch);
      CHECK(count <= batch);
      int next = 0;
      for (int k = 0; k < count; ++k) {
        const Microbatch piece = Microbatch::of(batch, count, k);
        CHECK(piece.first == next);
        CHECK(piece.size >= batch / count);
        CHECK(piece.size <= Microbatch::largest(batch, count));
        next += piece.size;
      }
      CHECK(next == batch);
    }
}

TEST_CASE("a learner with a cut model trains to the bits of one with a whole model") {
  auto data = std::make_shared<Dataset>();
  const TestTable table(kSmallImage, 60);
  data->name = "random";
  data->channels = kSmallImage.channels, data->height = kSmallImage.height,
  data->width = kSmallImage.width, data->classes = 3;
  data->count = 60, data->train_count = 50;
  data->features = table.features, data->labels = table.labels;
  const auto trained = [&](int batch, const SplitOptions& split, std::uint64_t seed) {
    LearnerRequest request;
    request.data = data;
    request.shards = {{}, {}};
    for (std::uint32_t i = 0; i < 50; ++i) request.shards[i < 20 ? 0 : 1].push_back(i);
    request.model = RandomGraph(seed).spec();
    request.sampling.batch = batch;
    request.sampling.weights = "samples";
    request.optimizer = {.rate = 0.05, .rule = {.momentum = 0.9, .weight_decay = 1e-3}};
    request.split = split;
    gpu::CpuDevice device(2);
    auto learner = make_learner<float>(std::move(request), device);
    if (!learner.ok()) FAIL(learner.error().message);
    const std::size_t d = (*learner)->parameters();
    std::vector<std::vector<float>> rows(6, std::vector<float>(d));
    std::vector<double> losses(2);
    std::vector<StepRequest<float>> steps;
    for (int peer = 0; peer < 2; ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      (*learner)->initialise(peer, rows[p]);
      steps.push_back({.peer = peer,
                       .steps = 3 + peer,
                       .parameters = rows[p].data(),
                       .state = {rows[2 + p].data()},
                       .gradient = rows[4 + p].data(),
                       .loss = &losses[p]});
    }
    (*learner)->local_steps(steps);
    rows.emplace_back(losses.begin(), losses.end());
    return rows;
  };
  for (const int batch : {0, 7})
    for (std::uint64_t seed = 3; seed < 6; ++seed) {
      const auto whole = trained(batch, {}, seed);
      for (const int microbatches : {1, 0, 5}) {
        const auto cut = trained(batch, {.layers = 2, .microbatches = microbatches}, seed);
        for (std::size_t r = 0; r < whole.size(); ++r) CHECK(same_bits(cut[r], whole[r]));
      }
    }
}
