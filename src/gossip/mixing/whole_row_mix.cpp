#include "gossip/mixing/whole_row_mix.hpp"

#include <algorithm>
#include <vector>

namespace gossamer::gossip {
namespace {

/// Row 0 is x, and the others are those of `rows`. `squared` are all distances of row 0, and then,
/// if there are more, those of row 1, …
Neighbourhood neighbourhood(const WholeRows& rows, const std::vector<double>& squared) {
  const std::size_t m = rows.sources.size() + 1;
  Neighbourhood hood{std::vector<double>(m, 1.0), SquaredDistances(m)};
  for (std::size_t j = 1; j < m; ++j) {
    hood.weights[j] = static_cast<double>(rows.sources[j - 1].weight);
    hood.weights[0] -= hood.weights[j];
  }
  hood.weights[0] = std::max(0.0, hood.weights[0]);  // the weights are rounded to float
  std::size_t next = 0;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = i + 1; j < m && next < squared.size(); ++j)
      hood.distances.set(i, j, squared[next++]);
  return hood;
}

}  // namespace

task<void> WholeRowMix::mix(Channel channel, MixedRow& row, WholeRows rows) {
  const std::span<const float> x = row.values();
  const std::span<float> out = row.back().values();
  const MixingRule* const rule = process_.options.rule;
  const RankRule* const ranks = rule ? std::get_if<RankRule>(&rule->function) : nullptr;
  const Time begin = process_.scheduler.now();
  if (ranks) co_await rank(*ranks, x, out, rows);
  else if (rule) co_await weigh(std::get<DistanceRule>(rule->function), x, rows);
  rule_seconds_ += gossip::seconds(process_.scheduler.now() - begin);
  if (!ranks) {
    MixOperation& operation = operations_.of(channel);
    operation.begin(x, out, std::move(rows));
    co_await operation.finished();
    operation.end();
  }
  row.swap();
}

task<void> WholeRowMix::rank(const RankRule& rule, std::span<const float> x, std::span<float> out,
                             const WholeRows& rows) {
  std::vector<const float*> ranked;
  if (rule.ranks_own_row) ranked.push_back(x.data());
  for (const gpu::MixSource& source : rows.sources) ranked.push_back(source.row);
  const Ranks ranks = rule.ranks(rows.sources.size());
  gpu::OrderStatisticsRequest<float> request{x.data(), out.data(), ranked};
  request.first = ranks.first;
  request.count = ranks.count;
  request.factor = ranks.factor;
  request.length = x.size();
  co_await process_.compute.operate(request);
}

task<void> WholeRowMix::weigh(const DistanceRule& rule, std::span<const float> x, WholeRows& rows) {
  std::vector<const float*> measured{x.data()};
  for (const gpu::MixSource& source : rows.sources) measured.push_back(source.row);
  gpu::DistancesRequest<float> request{measured, !rule.between_neighbours, x.size()};
  std::vector<double> squared(request.pairs());
  request.distances = squared.data();
  co_await process_.compute.operate(request);
  const std::vector<double> weights = rule.weights(neighbourhood(rows, squared));
  WholeRows mixed;
  for (std::size_t j = 0; j < rows.sources.size(); ++j) {
    const auto weight = static_cast<float>(weights[j + 1]);
    if (weight == 0) continue;
    mixed.sources.push_back({rows.sources[j].row, weight});
    mixed.from.push_back(rows.from[j]);
    mixed.held.push_back(std::move(rows.held[j]));
  }
  rows = std::move(mixed);
}

}  // namespace gossamer::gossip
