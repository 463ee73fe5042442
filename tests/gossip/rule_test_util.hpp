// Vocabulary of the tests of mixing rules: a rule by its name, and its mix of vectors in double.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/philox.hpp"
#include "gossip/rule.hpp"
#include "gpu/cpu_device.hpp"

namespace gossamer::gossip::testing {

using Vector = std::vector<double>;
using Vectors = std::vector<Vector>;

inline MixingRule rule_of(const std::string& name, const ParameterValues& values = {}) {
  auto kind = find_rule(name);
  REQUIRE(kind.ok());
  auto rule = kind->make(values);
  REQUIRE_MESSAGE(rule.ok(), (rule.ok() ? "" : rule.error().message));
  return std::move(rule).value();
}
inline ParameterValues hostile(std::int64_t b) { return {{"hostile", b}}; }

/// `count` vectors of `length` normal numbers.
inline Vectors normal_vectors(std::size_t count, std::size_t length, std::uint64_t seed) {
  RandomStream random(seed, kNoPeer, Purpose::test);
  Vectors vectors(count, Vector(length));
  for (Vector& vector : vectors)
    for (double& value : vector) value = random.next_normal();
  return vectors;
}

inline Vector combined(const Vectors& rows, const Vector& weights) {
  Vector sum(rows[0].size(), 0.0);
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weights[k] * rows[k][i];
  return sum;
}

inline double distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

/// What a peer with row 0 makes of the rows; weights are those of all rows, of sum 1.
inline Vector mixed(const MixingRule& rule, const Vectors& rows, const Vector& weights) {
  Vector out(rows[0].size());
  if (const auto* ranks = std::get_if<RankRule>(&rule.function)) {
    std::vector<const double*> ranked;
    for (std::size_t k = ranks->ranks_own_row ? 0 : 1; k < rows.size(); ++k)
      ranked.push_back(rows[k].data());
    const Ranks of = ranks->ranks(rows.size() - 1);
    const gpu::OrderStatisticsRequest<double> request{
        rows[0].data(), out.data(), ranked, of.first, of.count, of.factor, out.size()};
    gpu::BasicCpuDevice<double>(1).execute(std::span(&request, 1));
    return out;
  }
  Neighbourhood hood{weights, SquaredDistances(rows.size())};
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      hood.distances.set(i, j, std::pow(distance(rows[i], rows[j]), 2));
  Vector of_rows = rule.is_mean() ? weights : std::get<DistanceRule>(rule.function).weights(hood);
  of_rows[0] = 1 - std::accumulate(of_rows.begin() + 1, of_rows.end(), 0.0);
  return combined(rows, of_rows);
}

}  // namespace gossamer::gossip::testing
