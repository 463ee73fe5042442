#include "train/split/cut_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/suggestion.hpp"

namespace gossamer::train {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// Sums over the operations before each: of arithmetic and of those with parameters.
class Costs {
 public:
  explicit Costs(const CompiledModel& model)
      : flops_(model.operations().size() + 1), parameterised_(flops_.size()) {
    for (std::size_t o = 0; o + 1 < flops_.size(); ++o) {
      const CompiledOperation& operation = model.operations()[o];
      flops_[o + 1] = flops_[o] + operation.forward_flops + operation.backward_flops;
      parameterised_[o + 1] = parameterised_[o] + (operation.parameters > 0 ? 1 : 0);
    }
  }
  std::size_t operations() const { return flops_.size() - 1; }
  std::size_t parameterised() const { return parameterised_.back(); }
  double flops(std::size_t first, std::size_t last) const { return flops_[last] - flops_[first]; }
  bool is_empty(std::size_t first, std::size_t last) const {
    return parameterised_[last] == parameterised_[first];
  }

 private:
  std::vector<double> flops_;
  std::vector<std::size_t> parameterised_;
};

struct Cuts {
  std::vector<std::size_t> begins;  ///< of the parts
  double cost = 0;
};

/// The cuts into `parts` parts, none empty, with the least combined cost, where combine(cost of the
/// parts before, first, last) is the cost with the part first … last − 1, or kImpossible. Of equal
/// ones the cuts that come first. Dynamic programming over the ends of parts.
template <class Combine>
Cuts cheapest(const Costs& costs, std::size_t parts, Combine combine) {
  const std::size_t ends = costs.operations() + 1;
  std::vector<double> cost(ends, kImpossible), before;
  cost[0] = 0;
  std::vector<std::vector<std::size_t>> begin_of(parts, std::vector<std::size_t>(ends));
  for (std::size_t p = 0; p < parts; ++p) {
    before = std::exchange(cost, std::vector<double>(ends, kImpossible));
    for (std::size_t last = p + 1; last < ends; ++last)
      for (std::size_t first = p; first < last; ++first) {
        if (before[first] == kImpossible || costs.is_empty(first, last)) continue;
        if (const double all = combine(before[first], first, last); all < cost[last])
          cost[last] = all, begin_of[p][last] = first;
      }
  }
  Cuts cuts{std::vector<std::size_t>(parts), cost.back()};
  std::size_t end = costs.operations();
  for (std::size_t p = parts; p-- > 0;) end = cuts.begins[p] = begin_of[p][end];
  return cuts;
}

/// Values of a sample that cross a cut before each operation.
std::vector<double> crossing_values(const CompiledModel& model) {
  const auto& operations = model.operations();
  std::vector<double> values(operations.size() + 1);
  std::vector<std::size_t> last_use(operations.size());
  for (std::size_t o = 0; o < operations.size(); ++o)
    for (const int input : operations[o].inputs)
      if (input != kSampleInput) last_use[static_cast<std::size_t>(input)] = o;
  for (std::size_t o = 0; o < operations.size(); ++o)
    for (std::size_t cut = o + 1; cut <= last_use[o]; ++cut)
      values[cut] += static_cast<double>(operations[o].output.values());
  return values;
}

std::vector<std::size_t> even_cuts(const CompiledModel& model, const Costs& costs,
                                   std::size_t parts) {
  const auto larger = [&](double before, std::size_t first, std::size_t last) {
    return std::max(before, costs.flops(first, last));
  };
  const double largest = cheapest(costs, parts, larger).cost;
  const std::vector<double> values = crossing_values(model);
  const auto crossing = [&](double before, std::size_t first, std::size_t last) {
    return costs.flops(first, last) > largest ? kImpossible : before + values[first];
  };
  return cheapest(costs, parts, crossing).begins;
}

Result<std::vector<std::size_t>> named_cuts(const CompiledModel& model, const Costs& costs,
                                            const SplitOptions& options) {
  if (options.cuts.size() + 1 != static_cast<std::size_t>(options.layers))
    return invalid_error(
        fmt::format("split.cuts: {} names cut a model into {} stages, and "
                    "split.layers is {}",
                    options.cuts.size(), options.cuts.size() + 1, options.layers));
  std::vector<std::string> names;
  for (const CompiledOperation& operation : model.operations()) names.push_back(operation.name);
  std::vector<std::size_t> begins{0};
  for (const std::string& name : options.cuts) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      return invalid_error(fmt::format("split.cuts: the model has no operation '{}'{}", name,
                                       known_names(name, names)));
    begins.push_back(static_cast<std::size_t>(found - names.begin()));
    const std::size_t first = begins[begins.size() - 2];
    if (begins.back() == 0)
      return invalid_error(
          fmt::format("split.cuts: '{}' is the model's first operation, so the first stage would "
                      "be empty; name the operations with which the second and later stages begin",
                      name));
    if (begins.back() <= first)
      return invalid_error(
          fmt::format("split.cuts: '{}' does not come after '{}' in the model's "
                      "order ({})",
                      name, names[first], fmt::join(names, ", ")));
  }
  for (std::size_t p = 0; p < begins.size(); ++p)
    if (costs.is_empty(begins[p], p + 1 < begins.size() ? begins[p + 1] : names.size()))
      return invalid_error(
          fmt::format("split.cuts: the stage that begins with '{}' has no "
                      "parameters, and its worker would have nothing to mix",
                      names[begins[p]]));
  return begins;
}

}  // namespace

Result<std::vector<std::size_t>> choose_cuts(const CompiledModel& model,
                                             const SplitOptions& options) {
  const Costs costs(model);
  const auto parts = static_cast<std::size_t>(options.layers);
  if (parts > costs.parameterised())
    return invalid_error(fmt::format(
        "split.layers: {} stages cannot share a model of which {} operation{} parameters", parts,
        costs.parameterised(), costs.parameterised() == 1 ? " has" : "s have"));
  if (!options.cuts.empty()) return named_cuts(model, costs, options);
  return even_cuts(model, costs, parts);
}

}  // namespace gossamer::train
