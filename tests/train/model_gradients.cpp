// Prints random models, their samples, parameters, losses and gradients in double, as JSON lines:
// another implementation of the operators checks them (tests/package/test_package_operators.py).
//   model_gradients COUNT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#define DOCTEST_CONFIG_DISABLE
#include "tests/train/compiled_model_test_util.hpp"
#include "tests/train/graph_test_util.hpp"
#include "train/graph/operators.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

std::string parameters_json(const Operator& op) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : operator_kinds()[op.index()].values(op)) {
    const char* const quote = std::holds_alternative<std::string>(value) ? "\"" : "";
    fields.push_back(fmt::format("\"{0}\":{1}{2}{1}", name, quote, gossamer::to_string(value)));
  }
  return fmt::format("{{{}}}", fmt::join(fields, ","));
}

void print_model(std::uint64_t seed) {
  constexpr int kBatch = 3;
  const RandomGraph graph(seed, false);
  ModelSpec spec = graph.spec();
  // Every fourth one is a regression on what the others classify with.
  ModelContext data = kSmallImage;
  const bool regression = seed % 4 == 3;
  if (regression) {
    data.classes = 0;
    const int classifier = static_cast<int>(spec.operations.size()) - 1;
    spec.operations.push_back({"target", Dense{.units = 1}, {classifier}});
    spec.loss = Loss::squared_error;
  }
  Bench bench(spec, data, kBatch);
  if (graph.embeds())
    for (std::size_t i = 0; i < bench.table.features.size(); ++i)
      bench.table.features[i] = static_cast<float>(i * (seed + 1) % RandomGraph::kVocabulary);
  const std::vector<double> row = bench.parameters<double>();
  double loss = 0;
  const std::vector<double> gradient = bench.gradient(row, &loss);
  std::vector<std::string> operations, blocks;
  for (const Operation& operation : spec.operations)
    operations.push_back(
        fmt::format("{{\"name\":\"{}\",\"kind\":\"{}\",\"inputs\":[{}],"
                    "\"parameters\":{}}}",
                    operation.name, operator_name(operation.op), fmt::join(operation.inputs, ","),
                    parameters_json(operation.op)));
  for (const ParameterBlock& block : bench.network.blocks())
    blocks.push_back(fmt::format("{{\"name\":\"{}\",\"shape\":[{}],\"offset\":{}}}", block.name,
                                 fmt::join(block.shape, ","), block.offset));
  fmt::print(
      "{{\"seed\":{},\"shape\":[{},{},{}],\"batch\":{},\"operations\":[{}],\"blocks\":[{}],"
      "\"features\":[{}],\"{}\":[{}],\"row\":[{}],\"loss\":{},\"gradient\":[{}]}}\n",
      seed, kSmallImage.channels, kSmallImage.height, kSmallImage.width, kBatch,
      fmt::join(operations, ","), fmt::join(blocks, ","), fmt::join(bench.table.features, ","),
      regression ? "targets" : "labels",
      regression ? fmt::format("{}", fmt::join(bench.table.targets, ","))
                 : fmt::format("{}", fmt::join(bench.table.labels, ",")),
      fmt::join(row, ","), loss, fmt::join(gradient, ","));
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  for (int seed = 0; seed < count; ++seed) print_model(static_cast<std::uint64_t>(seed));
}
