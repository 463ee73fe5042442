// A model of one's own, from a file: a graph of operations (train/graph/model_file.hpp).
#include "train/graph/model_file.hpp"
#include "train/model.hpp"

namespace gossamer::train::models::graph {
namespace {

struct GraphOptions {
  std::string file;
};

const ParameterSet<GraphOptions>& graph_parameters() {
  static const auto set = ParameterSet<GraphOptions>().add(
      "file", &GraphOptions::file,
      {.help = "TOML file of the model's operations; `gossamer model FILE` shows it",
       .path = true,
       .local = true});
  return set;
}

Result<ModelSpec> make(const ModelContext& context, const ParameterValues& values) {
  GOSSAMER_TRY(const GraphOptions options, graph_parameters().read("model", values));
  if (options.file.empty())
    return invalid_error("model.file: model graph needs a TOML file of its operations");
  return read_model_file(options.file, context);
}

}  // namespace

ModelKind descriptor() {
  return {.name = "graph",
          .summary = "the graph of operations in a TOML file, with gradients derived from it",
          .source = "reverse traversal: Linnainmaa 1970",
          .parameters = graph_parameters().specs(),
          .needs_values = true,
          .make = make};
}

}  // namespace gossamer::train::models::graph
