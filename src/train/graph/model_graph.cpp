#include "train/graph/model_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace gossamer::train {
namespace {

struct OperatorNames {
  const char* name;        ///< in model files
  const char* short_name;  ///< in the names of operations that have no other
};

/// In the order of Operator's alternatives.
constexpr OperatorNames kNames[] = {{"dense", "dense"},
                                    {"convolution", "convolution"},
                                    {"max_pool", "pool"},
                                    {"average_pool", "pool"},
                                    {"group_norm", "norm"},
                                    {"layer_norm", "norm"},
                                    {"activation", "activation"},
                                    {"add", "add"},
                                    {"concatenate", "concatenate"},
                                    {"reshape", "reshape"},
                                    {"embedding", "embedding"},
                                    {"position_embedding", "positions"},
                                    {"attention", "attention"}};
static_assert(std::size(kNames) == std::variant_size_v<Operator>);

bool takes_several(const Operator& op) {
  return std::holds_alternative<Add>(op) || std::holds_alternative<Concatenate>(op);
}

Status check_inputs(const ModelSpec& spec, const Operation& operation) {
  const std::size_t count = operation.inputs.size();
  if (takes_several(operation.op) ? count < 2 : count != 1)
    return invalid_error(fmt::format("model: operation '{}' has {} inputs, but {} takes {}",
                                     operation.name, count, operator_name(operation.op),
                                     takes_several(operation.op) ? "two or more" : "one"));
  for (const int input : operation.inputs)
    if (input < kSampleInput || input >= static_cast<int>(spec.operations.size()))
      return invalid_error(fmt::format(
          "model: operation '{}' takes operation {}, which does not exist", operation.name, input));
  return {};
}

Status check_one_output(const ModelSpec& spec) {
  std::vector<bool> taken(spec.operations.size());
  for (const Operation& operation : spec.operations)
    for (const int input : operation.inputs)
      if (input != kSampleInput) taken[static_cast<std::size_t>(input)] = true;
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) outputs.push_back(fmt::format("'{}'", spec.operations[i].name));
  if (outputs.size() > 1)
    return invalid_error(
        fmt::format("model: no operation takes the output of {}, but a model has one output",
                    fmt::join(outputs, " and of ")));
  return {};
}

/// The names on a cycle among the operations that are not in the order, which there is.
std::string cycle_of(const ModelSpec& spec, const std::vector<bool>& is_ordered) {
  std::vector<std::size_t> path;
  auto at = static_cast<std::size_t>(std::find(is_ordered.begin(), is_ordered.end(), false) -
                                     is_ordered.begin());
  // Each operation that is left has an input that is left, so the path comes back to itself.
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    for (const int input : spec.operations[at].inputs)
      if (input != kSampleInput && !is_ordered[static_cast<std::size_t>(input)])
        at = static_cast<std::size_t>(input);
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  path.push_back(at);
  std::vector<std::string> names;
  for (auto i = path.rbegin(); i != path.rend(); ++i)
    names.push_back(fmt::format("'{}'", spec.operations[*i].name));
  return fmt::format("{}", fmt::join(names, " → "));
}

}  // namespace

std::string to_string(const Shape& shape) {
  return shape.positions() == 1
             ? fmt::format("{}", shape.channels)
             : fmt::format("{} × {} × {}", shape.height, shape.width, shape.channels);
}

const char* operator_name(const Operator& op) { return kNames[op.index()].name; }

std::string default_name(std::size_t number, std::size_t kind) {
  return fmt::format("{}.{}", number, kNames[kind].short_name);
}

ModelSpec chain(std::vector<Operator> operators, Loss loss) {
  ModelSpec spec{.operations = {}, .loss = loss};
  for (Operator& op : operators) {
    const auto i = static_cast<int>(spec.operations.size());
    std::string name = default_name(static_cast<std::size_t>(i), op.index());
    spec.operations.push_back({std::move(name), std::move(op), {i == 0 ? kSampleInput : i - 1}});
  }
  return spec;
}

Result<ModelSpec> ordered(const ModelSpec& spec) {
  const std::size_t count = spec.operations.size();
  if (count == 0) return invalid_error("model: it has no operations");
  for (const Operation& operation : spec.operations)
    GOSSAMER_TRY_STATUS(check_inputs(spec, operation));
  ModelSpec result{.operations = {}, .loss = spec.loss};
  std::vector<bool> is_ordered(count);
  std::vector<int> place(count);
  const auto is_ready = [&](const Operation& operation) {
    return std::all_of(operation.inputs.begin(), operation.inputs.end(), [&](int input) {
      return input == kSampleInput || is_ordered[static_cast<std::size_t>(input)];
    });
  };
  while (result.operations.size() < count) {
    std::size_t next = 0;
    while (next < count && (is_ordered[next] || !is_ready(spec.operations[next]))) ++next;
    if (next == count)
      return invalid_error(
          fmt::format("model: the operations {} are a cycle: each takes the "
                      "output of the one before",
                      cycle_of(spec, is_ordered)));
    Operation operation = spec.operations[next];
    for (int& input : operation.inputs)
      if (input != kSampleInput) input = place[static_cast<std::size_t>(input)];
    is_ordered[next] = true;
    place[next] = static_cast<int>(result.operations.size());
    result.operations.push_back(std::move(operation));
  }
  GOSSAMER_TRY_STATUS(check_one_output(spec));
  return result;
}

}  // namespace gossamer::train
