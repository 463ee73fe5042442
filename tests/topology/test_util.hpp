// The vocabulary of the topology tests: network("torus", 16).uniform().lazy().set("rows", 4) is a
// request.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "topology/mixing_matrix.hpp"
#include "topology/report.hpp"

namespace gossamer::topology::test {

struct Network {
  ScheduleRequest request;

  Network& uniform() {
    request.weights.weights = "uniform";
    return *this;
  }
  Network& lazy() {
    request.weights.lazy = true;
    return *this;
  }
  Network& weighed(const WeightOptions& weights) {
    request.weights = weights;
    return *this;
  }
  template <class Value>
  Network& set(const std::string& name, const Value& value) {
    if constexpr (std::is_same_v<Value, int>) request.values[name] = std::int64_t{value};
    else request.values[name] = value;
    return *this;
  }
  Network& seed(std::uint64_t value) {
    request.context.seed = value;
    return *this;
  }

  Result<std::unique_ptr<MixingSchedule>> try_schedule() const { return make_schedule(request); }
  std::unique_ptr<MixingSchedule> schedule() const {
    auto result = try_schedule();
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    return std::move(result).value();
  }
  std::string refusal() const {
    const auto result = try_schedule();
    return result.ok() ? "" : result.error().message;
  }
  TopologyReport report(std::uint64_t parameters = 1) const {
    auto result = examine(request, parameters);
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    return std::move(result).value();
  }
  double gap() const { return spectral_gap(*schedule()); }
};

inline Network network(const std::string& kind, int peers) {
  Network result;
  result.request.kind = kind;
  result.request.context.peers = peers;
  return result;
}

inline std::vector<WeightOptions> every_weighing() {
  return {{"auto", false},      {"auto", true},     {"metropolis", false},
          {"metropolis", true}, {"uniform", false}, {"uniform", true}};
}

/// The weighings that differ for this kind: "auto" where it prescribes weights; of a random
/// sequence, which takes a while to check, the plain one.
inline std::vector<WeightOptions> weighings_of(const std::string& kind, int peers) {
  std::vector<WeightOptions> all = every_weighing();
  const auto topology = find_kind(kind)->make({peers, 0}, {});
  if (!topology.ok()) return {};
  if ((*topology)->period() == 0) return {all.front()};
  if (!(*topology)->weights(0)) all.erase(all.begin(), all.begin() + 2);
  return all;
}

/// The n that a refusal says would work.
inline std::vector<int> workable(const std::string& refusal) {
  std::vector<int> found;
  const std::string before = "n = ";
  for (auto at = refusal.find(before); at != std::string::npos; at = refusal.find(before, at + 1))
    found.push_back(std::stoi(refusal.substr(at + before.size())));
  return found;
}

}  // namespace gossamer::topology::test
