// gossamer model FILE: shows the operations of a model, their shapes and their costs, and draws
// them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/quantity_text.hpp"
#include "base/toml_file.hpp"
#include "cli/commands.hpp"
#include "cli/output/text_table.hpp"
#include "peer/config/config_json.hpp"
#include "peer/setup/native_workload.hpp"
#include "peer/storage/files.hpp"
#include "train/dataset.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/graph/model_drawing.hpp"
#include "train/graph/model_file.hpp"
#include "train/graph/operators.hpp"
#include "train/model.hpp"
#include "train/split/pipelined_gradient.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct ModelCommand {
  std::string path;
  std::string input = "28x28x1";
  int classes = 10, batch = 32;
  train::SplitOptions split;
  std::vector<Override> overrides;
  std::string draw;
  bool json = false;
  bool describes_samples = false;  ///< an option says what samples or batches are
};

/// A model for certain samples.
struct ShownModel {
  std::string title;
  train::ModelContext data;
  train::ModelSpec spec;
  int batch = 1;
  train::SplitOptions split = {};

  train::Shape samples() const { return {data.height, data.width, data.channels}; }
};

/// Reads "28x28x1" or "64".
Result<train::Shape> read_shape(const std::string& text) {
  std::vector<int> extents;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (extents.size() < 3) {
    const auto [next, error] = std::from_chars(at, end, extents.emplace_back());
    if (error != std::errc() || extents.back() < 1) break;
    if (next == end && extents.size() == 1) return train::Shape{.channels = extents[0]};
    if (next == end && extents.size() == 3) return train::Shape{extents[0], extents[1], extents[2]};
    if (*next != 'x') break;
    at = next + 1;
  }
  return invalid_error(fmt::format(
      "--input {}: write HEIGHTxWIDTHxCHANNELS, as 28x28x1, or the number of values", text));
}

Result<ShownModel> read_file(const ModelCommand& command) {
  GOSSAMER_TRY(const train::Shape samples, read_shape(command.input));
  ShownModel model{.title = command.path,
                   .data = {},
                   .spec = {},
                   .batch = command.batch,
                   .split = command.split};
  model.data = {samples.channels, samples.height, samples.width, command.classes};
  GOSSAMER_TRY(model.spec, train::read_model_file(command.path, model.data));
  return model;
}

/// The model of a run, for its data and its batch.
Result<ShownModel> read_run(const ModelCommand& command) {
  GOSSAMER_TRY(const Config config, load_config(command.path, command.overrides));
  if (config.model.kind == kExternalModel)
    return invalid_error(
        "model.kind: the model is that of a task in Python, which has its operations");
  // Of own data, a shard's size matters only where it is the batch.
  std::vector<int> peers(config.shards.batch > 0 ? 1 : static_cast<std::size_t>(config.run.peers));
  std::iota(peers.begin(), peers.end(), 0);
  GOSSAMER_TRY(
      const train::Dataset data,
      train::make_dataset(config.data.kind, data_context(config, peers), config.data.values));
  ShownModel model{.title = fmt::format("{} ({})", command.path, config.model.kind),
                   .data = {data.channels, data.height, data.width, data.classes},
                   .spec = {},
                   .batch = config.shards.batch,
                   .split = config.model.split};
  GOSSAMER_TRY(model.spec, train::make_model(config.model.kind, model.data, config.model.values));
  if (model.batch > 0) return model;
  // The whole shard: memory is for the largest one.
  GOSSAMER_TRY(const train::Shards shards,
               train::make_shards(data, config.shards, config.run.peers, config.run.seed));
  for (const auto& shard : shards)
    model.batch = std::max(model.batch, static_cast<int>(shard.size()));
  return model;
}

Result<ShownModel> read_model(const ModelCommand& command) {
  GOSSAMER_TRY(const toml::table root, read_toml_file(command.path));
  const train::SplitOptions& split = command.split;
  if (split.layers < 2 && !split.cuts.empty())
    return invalid_error("--cuts: of a model that --layers cuts");
  if (!split.is_on() && split.microbatches > 0)
    return invalid_error("--microbatches: of a model that --layers or --parameters cuts");
  if (!root.contains("operation") && split.is_on())
    return invalid_error(
        "--layers and --parameters: a run has split.layers and split.parameters in its "
        "configuration, or in --set");
  if (!root.contains("operation") && command.describes_samples)
    return invalid_error(
        "--input, --classes and --batch: a run has its samples, and data.batch, in its "
        "configuration, or in --set");
  if (!root.contains("operation")) return read_run(command);
  if (!command.overrides.empty())
    return invalid_error("--set: changes the configuration of a run, and this file is a model");
  return read_file(command);
}

std::string input_name(const train::CompiledModel& model, int input) {
  return input == train::kSampleInput ? train::kSamplesName
                                      : model.operations()[static_cast<std::size_t>(input)].name;
}

std::vector<std::string> input_names(const train::CompiledModel& model,
                                     const train::CompiledOperation& operation) {
  std::vector<std::string> names;
  for (const int input : operation.inputs) names.push_back(input_name(model, input));
  return names;
}

double float_bytes(std::size_t values) { return static_cast<double>(values) * sizeof(float); }

/// The sums over the operations.
struct Totals {
  double forward = 0, backward = 0;
  std::size_t memory = 0;

  explicit Totals(const train::CompiledModel& model) {
    for (const train::CompiledOperation& operation : model.operations()) {
      forward += operation.forward_flops;
      backward += operation.backward_flops;
      memory += operation.memory_values;
    }
  }
};

void print_text(const ShownModel& shown, const train::CompiledModel& model) {
  const std::string target = shown.data.classes > 0 ? fmt::format("{} classes", shown.data.classes)
                                                    : std::string("a target to regress on");
  fmt::print("{}: samples of {}, {}, batches of {}\n\n", shown.title, to_string(shown.samples()),
             target, shown.batch);
  std::vector<TableRow> rows{{"operation", "kind", "inputs", "output", "parameters", "FLOP forward",
                              "backward", "memory"}};
  for (const train::CompiledOperation& operation : model.operations())
    rows.push_back({operation.name, describe(operation.op),
                    fmt::format("{}", fmt::join(input_names(model, operation), ", ")),
                    to_string(operation.output),
                    count_text(static_cast<double>(operation.parameters)),
                    count_text(operation.forward_flops), count_text(operation.backward_flops),
                    bytes_text(float_bytes(operation.memory_values))});
  const Totals totals(model);
  rows.push_back({"all", "", "", "", count_text(static_cast<double>(model.parameters())),
                  count_text(totals.forward), count_text(totals.backward),
                  bytes_text(float_bytes(totals.memory))});
  print_table(rows, {0, 1, 2, 3});
  fmt::print(
      "\nFLOP: floating-point operations of one sample; a multiplication and an addition are two.\n"
      "memory: of a batch: the output, and what the operation needs beside it.\n"
      "A step takes {} beside the rows of the algorithm and the optimizer: the gradient {}, and a "
      "workspace of {}:\nsamples {}, the operations' memory {}, gradients of outputs {}.\n",
      bytes_text(float_bytes(model.parameters() + model.program().workspace)),
      bytes_text(float_bytes(model.parameters())),
      bytes_text(float_bytes(model.program().workspace)),
      bytes_text(float_bytes(model.program().workspace - totals.memory - model.gradient_values())),
      bytes_text(float_bytes(totals.memory)), bytes_text(float_bytes(model.gradient_values())));
}

/// A worker of a cut model.
struct ShownWorker {
  const train::ModelPart& part;
  int workspaces = 0;  ///< microbatches in flight
  double workspace_bytes = 0, bytes_sent = 0;
};

std::vector<ShownWorker> workers_of(const ShownModel& shown, const train::SplitModel& split) {
  const int microbatches = shown.split.microbatches_of(shown.batch);
  const train::PipelineCosts costs = train::pipeline_costs(split, 0, shown.batch, sizeof(float));
  std::vector<ShownWorker> workers;
  for (int w = 0; w < shown.split.workers(); ++w) {
    const std::size_t bytes = train::PipelinedGradient<float>::worker_bytes(split, w, microbatches);
    const train::ModelPart& part = split.parts()[static_cast<std::size_t>(w)];
    workers.push_back({part, train::Pipeline::of(split, microbatches).in_flight(part.stage),
                       static_cast<double>(bytes), costs.bytes_sent(w)});
  }
  return workers;
}

void print_split(const ShownModel& shown, const train::SplitModel& split) {
  const int microbatches = shown.split.microbatches_of(shown.batch);
  fmt::print("\nCut over {} workers, {} microbatch{} of up to {} samples:\n\n",
             shown.split.workers(), microbatches, microbatches == 1 ? "" : "es",
             train::Microbatch::largest(shown.batch, microbatches));
  std::vector<TableRow> rows{{"worker", "operations", "parameters", "FLOP forward", "backward",
                              "workspaces", "sends a step"}};
  for (const ShownWorker& worker : workers_of(shown, split)) {
    const train::ModelPart& part = worker.part;
    rows.push_back({fmt::format("{}", rows.size() - 1), part.operations(),
                    count_text(static_cast<double>(part.parameters)),
                    count_text(part.forward_flops), count_text(part.backward_flops),
                    fmt::format("{}, {}", worker.workspaces, bytes_text(worker.workspace_bytes)),
                    bytes_text(worker.bytes_sent)});
  }
  print_table(rows, {1});
  fmt::print(
      "\nA worker keeps a workspace for each microbatch between its forward and backward pass, and "
      "sends outputs\nand gradients.");
  if (shown.split.layers > 1 && shown.split.parameters == 1)
    fmt::print(" Where stages are equal and links fast, they are idle {:.1f} % of a step at most.",
               100 * train::pipeline_bubble(shown.split.layers, microbatches));
  fmt::print("\n");
}

Json workers_json(const ShownModel& shown, const train::SplitModel& split) {
  Json workers = Json::array();
  for (const ShownWorker& worker : workers_of(shown, split))
    workers.push_back({{"first_operation", worker.part.first},
                       {"last_operation", worker.part.last},
                       {"parameters", worker.part.parameters},
                       {"forward_flops", worker.part.forward_flops},
                       {"backward_flops", worker.part.backward_flops},
                       {"workspaces", worker.workspaces},
                       {"workspace_bytes", worker.workspace_bytes},
                       {"bytes_sent_per_step", worker.bytes_sent}});
  return workers;
}

Json settings_json(const train::Operator& op) {
  Json settings = Json::object();
  for (const auto& [name, value] : train::operator_kinds()[op.index()].values(op))
    settings[name] = to_json(value);
  return settings;
}

Json tensors_json(const train::CompiledModel& model, const train::CompiledOperation& operation) {
  Json tensors = Json::object();
  for (std::size_t b = 0; b < operation.blocks; ++b) {
    const train::ParameterBlock& block = model.blocks()[operation.first_block + b];
    tensors[block.name] = block.shape;
  }
  return tensors;
}

void print_json(const ShownModel& shown, const train::CompiledModel& model,
                const std::optional<train::SplitModel>& split) {
  const train::Shape samples = shown.samples();
  Json operations = Json::array(), edges = Json::array();
  for (const train::CompiledOperation& operation : model.operations()) {
    operations.push_back(
        {{"name", operation.name},
         {"kind", train::operator_name(operation.op)},
         {"settings", settings_json(operation.op)},
         {"tensors", tensors_json(model, operation)},
         {"inputs", input_names(model, operation)},
         {"output", {operation.output.height, operation.output.width, operation.output.channels}},
         {"parameters", operation.parameters},
         {"forward_flops", operation.forward_flops},
         {"backward_flops", operation.backward_flops},
         {"memory_bytes", float_bytes(operation.memory_values)}});
    for (const int input : operation.inputs) {
      const std::size_t values =
          input == train::kSampleInput
              ? samples.values()
              : model.operations()[static_cast<std::size_t>(input)].output.values();
      edges.push_back({{"from", input_name(model, input)},
                       {"to", operation.name},
                       {"bytes", float_bytes(values) * shown.batch}});
    }
  }
  Json all = {{"input", {samples.height, samples.width, samples.channels}},
              {"classes", shown.data.classes},
              {"batch", shown.batch},
              {"parameters", model.parameters()},
              {"workspace_bytes", float_bytes(model.program().workspace)},
              {"gradient_bytes", float_bytes(model.gradient_values())},
              {"operations", std::move(operations)},
              {"edges", std::move(edges)}};
  if (split) {
    const int microbatches = shown.split.microbatches_of(shown.batch);
    all["split"] = {{"workers", workers_json(shown, *split)},
                    {"microbatches", microbatches},
                    {"bubble", train::pipeline_bubble(shown.split.layers, microbatches)}};
  }
  fmt::print("{}\n", all.dump(2));
}

Status show(const ModelCommand& command) {
  GOSSAMER_TRY(const ShownModel shown, read_model(command));
  auto compiled = train::CompiledModel::compile(shown.spec, shown.data, shown.batch);
  if (!compiled.ok())
    return invalid_error(fmt::format("{}: {}", command.path, compiled.error().message));
  std::optional<train::SplitModel> split;
  if (shown.split.is_on()) {
    auto made = train::SplitModel::make(*compiled, shown.split, shown.batch);
    if (!made.ok()) return invalid_error(fmt::format("{}: {}", command.path, made.error().message));
    split = std::move(made).value();
  }
  if (!command.draw.empty()) {
    GOSSAMER_TRY(const std::string svg,
                 train::draw_model(*compiled, shown.title, shown.samples(), shown.batch));
    GOSSAMER_TRY_STATUS(write_file(command.draw, svg));
  }
  if (command.json) {
    print_json(shown, *compiled, split);
    return {};
  }
  print_text(shown, *compiled);
  if (split) print_split(shown, *split);
  return {};
}

void add_split_options(CLI::App& model, train::SplitOptions& split) {
  model
      .add_option("--layers", split.layers,
                  "of a model file: the stages that it is cut into (a run has split.layers)")
      ->check(CLI::Range(1, train::SplitOptions::kMostLayers));
  model
      .add_option("--parameters", split.parameters,
                  "of a model file: the workers that share each stage (a run has split.parameters)")
      ->check(CLI::Range(1, train::SplitOptions::kMostParameters));
  model
      .add_option("--microbatches", split.microbatches,
                  "the microbatches of a batch (default: four for each stage)")
      ->check(CLI::Range(1, train::SplitOptions::kMostMicrobatches));
  model
      .add_option(
          "--cuts", split.cuts,
          "with --layers: names of the operations with which the second and each later stage "
          "begins, separated by commas (default: auto, they are chosen)")
      ->delimiter(',');
}

}  // namespace

void add_model(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<ModelCommand>();
  CLI::App* model = app.add_subcommand(
      "model", "show a model's operations, their shapes, memory and arithmetic, and draw them");
  model
      ->add_option("file", command->path,
                   "TOML file of a model ([[operation]]), or the configuration of a run")
      ->required();
  model->add_option("--input", command->input,
                    "of a model file: the shape of a sample, HEIGHTxWIDTHxCHANNELS, or its number "
                    "of values (default 28x28x1)");
  model
      ->add_option("--classes", command->classes,
                   "of a model file: the classes of the data; 0: a target to regress on (default "
                   "10)")
      ->check(CLI::Range(0, 10'000'000));
  model->add_option("--batch", command->batch, "of a model file: samples of a batch (default 32)")
      ->check(CLI::Range(1, 1'000'000));
  add_split_options(*model, command->split);
  model
      ->add_option("--set", command->overrides,
                   "section.key=value: override a key of the run; may be repeated")
      ->allow_extra_args(false);
  model->add_option("--draw", command->draw, "draw the graph of operations to an SVG file")
      ->check(svg_file());
  model->add_flag("--json", command->json, "print everything as JSON");
  model->callback([command, model, &exit_code] {
    for (const char* option : {"--input", "--classes", "--batch"})
      if (model->count(option) > 0) command->describes_samples = true;
    if (command->split.cuts == std::vector<std::string>{"auto"}) command->split.cuts.clear();
    const Status status = show(*command);
    exit_code = status.ok() ? 0 : print_error(status.error());
  });
}

}  // namespace gossamer::cli
