#include "train/graph/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "base/toml_file.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/graph/operators.hpp"

namespace gossamer::train {
namespace {

constexpr std::size_t kMostOperations = 4096;
constexpr std::size_t kMostInputs = 1024;  // of an operation
constexpr std::size_t kMostNameBytes = 64;

/// An [[operation]] whose inputs are names yet.
struct Entry {
  std::string place;  ///< "resnet.toml:12"
  std::string name;
  Operator op;
  std::optional<std::vector<std::string>> inputs;
};

Result<std::string> text_of(const std::string& place, const toml::table& table, const char* key) {
  const auto text = table[key].value_exact<std::string>();
  if (!text) return invalid_error(fmt::format("{}: {} is a text", place, key));
  return *text;
}

/// Names become those of tensors, in checkpoints and in logs.
Status check_name(const std::string& place, const std::string& name) {
  const bool is_plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
  if (name.empty() || name.size() > kMostNameBytes || !is_plain)
    return invalid_error(
        fmt::format("{}: '{}' is no name of an operation: use up to {} letters, digits, '_', '-' "
                    "and '.'",
                    place, printable(excerpt(name)), kMostNameBytes));
  if (name == kSamplesName)
    return invalid_error(
        fmt::format("{}: '{}' stands for the samples, and cannot name an operation", place, name));
  return {};
}

Result<const OperatorKind*> find_operator(const std::string& place, const std::string& name) {
  std::vector<std::string> names;
  for (const OperatorKind& kind : operator_kinds()) {
    if (kind.name == name) return &kind;
    names.push_back(kind.name);
  }
  return invalid_error(fmt::format("{}: there is no operator '{}'{}", place,
                                   printable(excerpt(name)), known_names(name, names)));
}

Result<std::vector<std::string>> inputs_of(const std::string& place, const toml::node& node) {
  const auto value = parameter_value(node);
  const auto* const texts =
      value.ok() ? std::get_if<std::vector<std::string>>(&value.value()) : nullptr;
  if (texts == nullptr || texts->empty())
    return invalid_error(fmt::format(
        "{}: inputs is a list of names of operations, as [\"stem\", \"samples\"]", place));
  if (texts->size() > kMostInputs)
    return invalid_error(fmt::format("{}: {} inputs; an operation has {} at most", place,
                                     texts->size(), kMostInputs));
  return *texts;
}

/// The values of the operator's parameters.
Result<ParameterValues> values_of(const std::string& path, const std::string& name,
                                  const toml::table& table, const OperatorKind& kind) {
  ParameterValues values;
  for (const auto& [key, node] : table) {
    if (key == "name" || key == "kind" || key == "inputs") continue;
    auto value = parameter_value(node);
    if (!value.ok())
      return invalid_error(fmt::format("{}: {}.{}: {}", place_of(path, node), name,
                                       printable(excerpt(key.str())), value.error().message));
    const std::string parameter(key.str());
    const ParameterValues one{{parameter, std::move(value).value()}};
    const auto checked = check_values(name, kind.parameters, one);
    if (!checked.ok())
      return invalid_error(fmt::format("{}: {}", place_of(path, node), checked.error().message));
    values.insert(one.begin(), one.end());
  }
  return values;
}

Result<Entry> read_entry(const std::string& path, const toml::node& node, std::size_t number,
                         const ModelContext& context) {
  Entry entry{.place = place_of(path, node), .name = {}, .op = {}, .inputs = {}};
  const toml::table* table = node.as_table();
  if (table == nullptr || !table->contains("kind"))
    return invalid_error(
        fmt::format("{}: write [[operation]] above the `kind` of an operation", entry.place));
  GOSSAMER_TRY(const std::string kind_name, text_of(entry.place, *table, "kind"));
  GOSSAMER_TRY(const OperatorKind* kind, find_operator(entry.place, kind_name));
  entry.name = default_name(number, static_cast<std::size_t>(kind - operator_kinds().data()));
  if (table->contains("name")) {
    GOSSAMER_TRY(entry.name, text_of(entry.place, *table, "name"));
    GOSSAMER_TRY_STATUS(check_name(entry.place, entry.name));
  }
  if (const toml::node* inputs = table->get("inputs")) {
    GOSSAMER_TRY(entry.inputs, inputs_of(place_of(path, *inputs), *inputs));
  }
  GOSSAMER_TRY(const ParameterValues values, values_of(path, entry.name, *table, *kind));
  auto op = kind->make(entry.name, values, context);
  if (!op.ok()) return invalid_error(fmt::format("{}: {}", entry.place, op.error().message));
  entry.op = std::move(op).value();
  return entry;
}

Result<Loss> loss_of(const std::string& path, const toml::table& root,
                     const ModelContext& context) {
  if (!root.contains("loss"))
    return context.classes > 0 ? Loss::softmax_cross_entropy : Loss::squared_error;
  const std::string place = place_of(path, *root.get("loss"));
  GOSSAMER_TRY(const std::string name, text_of(place, root, "loss"));
  if (name == "softmax_cross_entropy") return Loss::softmax_cross_entropy;
  if (name == "squared_error") return Loss::squared_error;
  return invalid_error(fmt::format("{}: there is no loss '{}'{}", place, printable(excerpt(name)),
                                   known_names(name, {"softmax_cross_entropy", "squared_error"})));
}

Result<std::vector<Entry>> read_entries(const std::string& path, const toml::table& root,
                                        const ModelContext& context) {
  for (const auto& [key, node] : root)
    if (key != "operation" && key != "loss")
      return invalid_error(
          fmt::format("{}: '{}' is unknown in a model file; there are: loss, "
                      "[[operation]]",
                      place_of(path, node), printable(excerpt(key.str()))));
  if (root["operation"].is_table())
    return invalid_error(
        fmt::format("{}: write [[operation]], with two brackets on each side: there may be several",
                    place_of(path, *root.get("operation"))));
  const toml::array* list = root["operation"].as_array();
  if (list == nullptr || list->empty())
    return invalid_error(
        fmt::format("{}: a model has operations: write [[operation]] above each", path));
  if (list->size() > kMostOperations)
    return invalid_error(
        fmt::format("{}: {} operations; the most are {}", path, list->size(), kMostOperations));
  std::vector<Entry> entries;
  for (const toml::node& node : *list) {
    GOSSAMER_TRY(Entry entry, read_entry(path, node, entries.size(), context));
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// The numbers of the operations by name.
Result<std::map<std::string, int>> numbers_of(const std::vector<Entry>& entries) {
  std::map<std::string, int> numbers;
  for (const Entry& entry : entries) {
    const auto [found, is_new] = numbers.emplace(entry.name, static_cast<int>(numbers.size()));
    if (!is_new)
      return invalid_error(fmt::format("{}: there is an operation '{}' already, at {}", entry.place,
                                       entry.name,
                                       entries[static_cast<std::size_t>(found->second)].place));
  }
  return numbers;
}

}  // namespace

Result<ModelSpec> read_model_file(const std::string& path, const ModelContext& context) {
  GOSSAMER_TRY(const toml::table root, read_toml_file(path));
  ModelSpec spec;
  GOSSAMER_TRY(spec.loss, loss_of(path, root, context));
  GOSSAMER_TRY(const std::vector<Entry> entries, read_entries(path, root, context));
  GOSSAMER_TRY(auto numbers, numbers_of(entries));
  numbers.emplace(kSamplesName, kSampleInput);
  for (const Entry& entry : entries) {
    const int before = static_cast<int>(spec.operations.size()) - 1;
    Operation operation{entry.name, entry.op, {}};
    if (!entry.inputs) operation.inputs = {before};  // of the first operation the samples
    static_assert(kSampleInput == -1);
    for (const std::string& input : entry.inputs.value_or(std::vector<std::string>())) {
      const auto found = numbers.find(input);
      if (found == numbers.end()) {
        std::vector<std::string> names;
        for (const auto& [name, number] : numbers) names.push_back(name);
        return invalid_error(fmt::format("{}: operation '{}' takes '{}', which does not exist{}",
                                         entry.place, entry.name, printable(excerpt(input)),
                                         known_names(input, names)));
      }
      operation.inputs.push_back(found->second);
    }
    spec.operations.push_back(std::move(operation));
  }
  // Compiled for a single sample, so that an error names the file.
  const auto compiled = CompiledModel::compile(spec, context, 1);
  if (!compiled.ok()) return invalid_error(fmt::format("{}: {}", path, compiled.error().message));
  return spec;
}

}  // namespace gossamer::train
