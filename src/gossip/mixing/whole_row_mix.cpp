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
  const bool as_difference = process_.options.channels[channel].as_difference;
  GOSSAMER_CHECK(!rule || !as_difference, "a rule mixes no differences");
  const Time begin = process_.scheduler.now();
  if (ranks) co_await rank(*ranks, x, out, rows);
  else if (rule) co_await weigh(std::get<DistanceRule>(rule->function), x, rows);
  rule_seconds_ += gossip::seconds(process_.scheduler.now() - begin);
  if (!ranks) {
    MixOperation& operation = operations_.of(channel);
    operation.begin(x, out, std::move(rows), as_difference);
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
  std::vector<double> weights = rule.weights(neighbourhood(rows, squared));
  if (rule.by_losses && process_.compute.trainer() != nullptr) {
    const std::vector<double> losses =
        co_await batch_losses(measured, weights, rows.round, x.size());
    weights = rule.by_losses(weights, losses);
  }
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

// One after the other: the requests of all peers of the process form a batch.
task<std::vector<double>> WholeRowMix::batch_losses(const std::vector<const float*>& rows,
                                                    const std::vector<double>& weights, Round round,
                                                    std::size_t length) {
  std::vector<double> losses(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (k > 0 && weights[k] == 0) continue;
    TrainRequest request;
    request.peer = request.shard_of = messenger_.peer();
    request.step = round;
    request.x = {const_cast<float*>(rows[k]), length};  // it is only read
    co_await process_.compute.train(TrainOperation::batch_loss, request);
    losses[k] = request.loss;
  }
  co_return losses;
}

}  // namespace gossamer::gossip
