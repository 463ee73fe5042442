// Models in files: what they mean, and the errors of files that are no models.
#include <cstdio>
#include <fstream>

#include "base/temporary_folder.hpp"
#include "tests/text_test_util.hpp"
#include "tests/train/compiled_model_test_util.hpp"
#include "train/graph/model_file.hpp"
#include "train/graph/operators.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr ModelContext kDigitImages{.channels = 1, .height = 8, .width = 8, .classes = 10};

/// A model file with this text.
class ModelText {
 public:
  explicit ModelText(const std::string& text) : folder_(TemporaryFolder::make().value()) {
    std::ofstream(path()) << text;
  }
  std::string path() const { return (folder_.path() / "model.toml").string(); }

 private:
  TemporaryFolder folder_;
};

Result<ModelSpec> read(const std::string& text, const ModelContext& data = kDigitImages) {
  const ModelText file(text);
  return make_model("graph", data, {{"file", file.path()}});
}

std::string model_file_refusal(const std::string& text) {
  const auto spec = read(text);
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.error().kind == ErrorKind::invalid);
  CHECK(contains(spec.error().message, "model.toml"));
  return spec.error().message;
}

const std::string kResidual = R"(
[[operation]]
name = "stem"
kind = "convolution"
channels = 4
padding = 1
activation = "relu"
[[operation]]
name = "norm"
kind = "group_norm"
groups = 2
[[operation]]
name = "sum"
kind = "add"
inputs = ["norm", "stem"]
activation = "relu"
[[operation]]
kind = "dense"
)";

}  // namespace

TEST_CASE("a model file: default inputs, names, units and loss") {
  const auto spec = read(kResidual);
  REQUIRE(spec.ok());
  CHECK(spec->loss == Loss::softmax_cross_entropy);
  CHECK(canonical_text(*spec) ==
        "softmax_cross_entropy\n"
        "stem convolution -1 activation=relu bias=true channels=4 kernel=3 padding=1\n"
        "norm group_norm 0 activation=none groups=2\n"
        "sum add 1,0 activation=relu\n"
        "3.dense dense 2 activation=none bias=true per_position=false units=10");
  check_gradient(Bench(*spec, kDigitImages, 2));
  const auto regression = read("[[operation]]\nkind = \"dense\"\n", {.width = 5});
  REQUIRE(regression.ok());
  CHECK(regression->loss == Loss::squared_error);
  CHECK(std::get<Dense>(regression->operations[0].op).units == 1);
}

TEST_CASE("the library's models in a file are the same models, names of tensors included") {
  const auto from_file = read(R"(
loss = "softmax_cross_entropy"
[[operation]]
kind = "dense"
units = 128
activation = "relu"
[[operation]]
kind = "dense"
)");
  const auto own = make_model("mlp", kDigitImages, {});
  REQUIRE(from_file.ok());
  REQUIRE(own.ok());
  CHECK(canonical_text(*from_file) == canonical_text(*own));
}

TEST_CASE("operations of a file without names have the names of the library's models") {
  const auto from_file = read(R"(
[[operation]]
kind = "convolution"
channels = 8
kernel = 5
padding = 2
[[operation]]
kind = "group_norm"
groups = 4
activation = "relu"
[[operation]]
kind = "max_pool"
[[operation]]
kind = "dense"
)");
  const auto own = make_model("cnn", kDigitImages, {{"channels", std::vector<std::int64_t>{8}}});
  REQUIRE(from_file.ok());
  REQUIRE(own.ok());
  CHECK(canonical_text(*from_file) == canonical_text(*own));
}

TEST_CASE("a model file may list its operations in any order") {
  const auto spec = read(R"(
[[operation]]
name = "out"
kind = "dense"
inputs = ["hidden"]
[[operation]]
name = "hidden"
kind = "dense"
units = 7
inputs = ["samples"]
)");
  REQUIRE(spec.ok());
  const Bench bench(*spec, kDigitImages, 1);
  CHECK(bench.network.blocks()[0].name == "hidden.weights");
  CHECK(bench.network.blocks()[2].name == "out.weights");
}

TEST_CASE("every operator can be written in a file, and has its parameters described") {
  for (const OperatorKind& kind : operator_kinds()) {
    CAPTURE(kind.name);
    CHECK_FALSE(kind.summary.empty());
    for (const ParameterSpec& parameter : kind.parameters)
      CHECK_FALSE(parameter.notes.help.empty());
    ParameterValues values;  // where a value must be given
    for (const ParameterSpec& parameter : kind.parameters)
      if (const auto* number = std::get_if<std::int64_t>(&parameter.default_value);
          number != nullptr && static_cast<double>(*number) < parameter.notes.minimum)
        values[parameter.name] = static_cast<std::int64_t>(parameter.notes.minimum);
    const auto made = kind.make("test", values, kDigitImages);
    REQUIRE(made.ok());
    CHECK(operator_name(*made) == kind.name);
    const auto again = kind.make("test", kind.values(*made), kDigitImages);
    REQUIRE(again.ok());
    CHECK(kind.values(*again) == kind.values(*made));
  }
}

TEST_CASE("files that are no models are refused with the place, the name and the reason") {
  const auto operation = [](const std::string& keys) { return "[[operation]]\n" + keys + "\n"; };
  const std::string last = operation("kind = \"dense\"");
  CHECK(contains(model_file_refusal(""), "write [[operation]]"));
  CHECK(contains(model_file_refusal("operation = 3"), "write [[operation]]"));
  CHECK(contains(model_file_refusal("operation = [1, 2]"), "write [[operation]]"));
  CHECK(contains(model_file_refusal("[operation]\nkind = \"dense\""), "two brackets"));
  CHECK(contains(model_file_refusal("layers = 3\n" + last), "'layers' is unknown"));
  CHECK(contains(model_file_refusal("= 3"), "not TOML"));
  CHECK(contains(model_file_refusal("loss = \"squared_eror\"\n" + last), "'squared_error'?"));
  CHECK(contains(model_file_refusal("loss = 3\n" + last), "loss is a text"));
  CHECK(contains(model_file_refusal(operation("units = 3")), "`kind`"));
  CHECK(contains(model_file_refusal(operation("kind = 3")), "kind is a text"));
  const std::string misspelt = model_file_refusal(operation("kind = \"convolutoin\""));
  CHECK(contains(misspelt, ":1: there is no operator 'convolutoin'"));
  CHECK(contains(misspelt, "'convolution'?"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nunit = 3")), "units"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nunits = -3")),
                 "model.toml:3: 0.dense.units"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nunits = 1e5")), "integer"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nunits = {a = 3}")), "units"));
  CHECK(
      contains(model_file_refusal(operation("kind = \"dense\"\nactivation = \"relux\"")), "relu"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nname = \"samples\"")),
                 "cannot name"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nname = \"a b\"")), "letters"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nname = \"\"")), "letters"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nname = \"\\u001b[2J\"")), "?[2J"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\ninputs = []")), "inputs is"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\ninputs = [3]")), "inputs is"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\ninputs = \"samples\"")),
                 "inputs is"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\ninputs = [\"stm\"]")),
                 "takes 'stm', which does not exist"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nname = \"a\"") +
                                    operation("kind = \"dense\"\nname = \"a\"")),
                 "there is an operation 'a' already"));
  CHECK(contains(model_file_refusal(operation("kind = \"dense\"\nname = \"a\"\ninputs = [\"a\"]")),
                 "'a' → 'a' are a cycle"));
  std::string fan_in = "\"samples\"";
  for (int i = 0; i < 1024; ++i) fan_in += ", \"samples\"";
  CHECK(contains(model_file_refusal(operation("kind = \"add\"\ninputs = [" + fan_in + "]")),
                 "1025 inputs"));
  CHECK(contains(model_file_refusal("loss = \"squared_error\"\n" + last), "model.toml: model:"));
  std::string many;
  for (int i = 0; i < 4097; ++i) many += last;
  CHECK(contains(model_file_refusal(many), "4097 operations"));
  CHECK(contains(make_model("graph", kDigitImages, {}).error().message, "model.file"));
  CHECK(make_model("graph", kDigitImages, {{"file", std::string("/nowhere/model.toml")}})
            .error()
            .kind == ErrorKind::data);
}
