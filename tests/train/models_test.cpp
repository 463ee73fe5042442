// Every model of the catalog: its gradient, its shapes, and the data that it refuses.
#include <map>

#include "tests/text_test_util.hpp"
#include "tests/train/compiled_model_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr ModelContext kDigits{.channels = 1, .height = 8, .width = 8, .classes = 10};
constexpr ModelContext kMnist{.channels = 1, .height = 28, .width = 28, .classes = 10};
constexpr ModelContext kTwelveFeatures{.channels = 1, .height = 1, .width = 12};

ModelSpec model(const std::string& kind, const ModelContext& data,
                const ParameterValues& values = {}) {
  auto spec = make_model(kind, data, values);
  if (!spec.ok()) FAIL(spec.error().message);
  return std::move(spec).value();
}

std::string model_refusal(const std::string& kind, const ModelContext& data,
                          const ParameterValues& values = {}) {
  const auto spec = make_model(kind, data, values);
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.error().kind == ErrorKind::invalid);
  return spec.error().message;
}

using Ints = std::vector<std::int64_t>;

}  // namespace

TEST_CASE(
    "the catalog: every model is described, and trains on data of its kind with its defaults "
    "(those of files: "
    "model_file_test.cpp)") {
  for (const ModelKind& kind : models::catalog()) {
    CAPTURE(kind.name);
    CHECK_FALSE(kind.summary.empty());
    CHECK_FALSE(kind.source.empty());
    for (const ParameterSpec& parameter : kind.parameters)
      CHECK_FALSE(parameter.notes.help.empty());
    if (kind.needs_values) continue;
    const bool regresses = !kind.make(kDigits, {}).ok();
    const ModelContext data =
        regresses ? kTwelveFeatures : ModelContext{.height = 8, .width = 8, .classes = 4};
    ParameterValues small;  // smaller sizes than the defaults, so that the numeric gradient is
                            // fast
    if (kind.name == "mlp") small = {{"hidden", Ints{11}}};
    if (kind.name == "cnn") small = {{"channels", Ints{4, 8}}};
    check_gradient(Bench(model(kind.name, data, small), data, 3));
    CHECK_FALSE(make_model(kind.name, data, {{"no_such_key", true}}).ok());
  }
}

TEST_CASE("models with other parameters") {
  check_gradient(
      Bench(model("mlp", kDigits, {{"hidden", Ints{6, 5}}, {"activation", std::string("tanh")}}),
            kDigits, 4));
  check_gradient(Bench(model("mlp", kDigits, {{"hidden", Ints{}}}), kDigits, 4));
  check_gradient(Bench(model("linear", kTwelveFeatures, {{"bias", true}}), kTwelveFeatures, 4));
  const ModelContext colour{.channels = 3, .height = 6, .width = 7, .classes = 3};
  check_gradient(
      Bench(model("cnn", colour, {{"channels", Ints{6}}, {"groups", std::int64_t{3}}}), colour, 2));
}

TEST_CASE("sizes: softmax 650, mlp 784-128-10, cnn on 28 × 28") {
  CHECK(Bench(model("softmax", kDigits), kDigits, 1).network.parameters() == 650);
  CHECK(Bench(model("linear", kTwelveFeatures), kTwelveFeatures, 1).network.parameters() == 12);
  CHECK(Bench(model("mlp", kMnist), kMnist, 1).network.parameters() ==
        784 * 128 + 128 + 128 * 10 + 10);
  const Bench cnn(model("cnn", kMnist), kMnist, 1);
  CHECK(cnn.network.parameters() ==
        (25 * 8 + 8 + 16) + (25 * 8 * 16 + 16 + 32) + (7 * 7 * 16 * 10 + 10));
  std::size_t end = 0;
  for (const ParameterBlock& block : cnn.network.blocks()) {
    CHECK(block.offset == end);
    end += block.length;
  }
  CHECK(end == cnn.network.parameters());
  CHECK(cnn.network.blocks().front().name == "0.convolution.weights");
  CHECK(cnn.network.blocks().front().shape == std::vector<int>{5, 5, 1, 8});
}

TEST_CASE("a model refuses data that it cannot be trained on") {
  for (const char* kind : {"softmax", "mlp", "cnn"})
    CHECK(contains(model_refusal(kind, kTwelveFeatures), "linear"));
  CHECK(contains(model_refusal("softmax", {.width = 3, .classes = 1}), "single class"));
  CHECK(contains(model_refusal("linear", kDigits), "10 classes"));
  CHECK(contains(model_refusal("cnn", {.width = 64, .classes = 10}), "1 × 64"));
  CHECK(contains(model_refusal("cnn", kDigits, {{"channels", Ints{4, 4, 4, 4}}}), "too many"));
  CHECK(contains(model_refusal("cnn", kDigits, {{"channels", Ints{6}}}), "does not divide 6"));
  CHECK(contains(model_refusal("cnn", kDigits, {{"channels", Ints{}}}), "model.channels"));
  CHECK(contains(model_refusal("mlp", kDigits, {{"hidden", Ints{0}}}), "model.hidden"));
  CHECK(contains(model_refusal("mlp", kDigits, {{"hidden", Ints(1025, 1)}}), "1025 layers"));
  CHECK(contains(model_refusal("mlp", kDigits, {{"activation", std::string("gelu")}}),
                 "model.activation"));
  CHECK(contains(model_refusal("perceptron", kDigits), "cnn, graph, linear, mlp, softmax"));
}

TEST_CASE(
    "starts: He for relu, Glorot otherwise, scales 1, the rest 0; equal for equal seeds, float as "
    "double") {
  const Bench bench(model("mlp", kMnist), kMnist, 1);
  const CompiledModel& network = bench.network;
  std::vector<double> row(network.parameters()), again(row.size()), other(row.size());
  std::vector<float> single(row.size());
  network.initialise<double>(1, kNoPeer, row);
  network.initialise<double>(1, kNoPeer, again);
  network.initialise<double>(2, kNoPeer, other);
  network.initialise<float>(1, kNoPeer, single);
  CHECK(row == again);
  CHECK(row != other);
  CHECK(single == std::vector<float>(row.begin(), row.end()));
  const auto& blocks = network.blocks();
  double squares = 0, largest = 0;
  for (std::size_t i = 0; i < blocks[0].length; ++i) squares += row[i] * row[i];
  CHECK(squares / static_cast<double>(blocks[0].length) ==
        doctest::Approx(2.0 / 784).epsilon(0.02));
  for (std::size_t i = 0; i < blocks[2].length; ++i)
    largest = std::max(largest, std::abs(row[blocks[2].offset + i]));
  CHECK(largest <= std::sqrt(6.0 / 138));
  CHECK(largest > 0.95 * std::sqrt(6.0 / 138));
  for (std::size_t i = 0; i < blocks[1].length; ++i) CHECK(row[blocks[1].offset + i] == 0);
  const Bench cnn(model("cnn", kDigits), kDigits, 1);
  row.resize(cnn.network.parameters());
  cnn.network.initialise<double>(1, kNoPeer, row);
  for (const ParameterBlock& block : cnn.network.blocks())
    if (block.name.find("scale") != std::string::npos) CHECK(row[block.offset] == 1);
}
