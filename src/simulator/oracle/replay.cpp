#include "simulator/oracle/replay.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "gossip/process/options.hpp"
#include "simulator/oracle/checks.hpp"

namespace gossamer::simulator {

Share Replay::share_of(int a, int j, Round t) const {
  const LinkPeriod* link = index_.links().at(a, j, t);
  if (link == nullptr || !link->covers(t)) return Share::kept;
  if (t == link->lost) return Share::either;
  return t >= link->entered ? Share::given : Share::either;
}

unsigned Replay::open_shares(int a, Round t) const {
  unsigned open = 0;
  for (int j = 0; j < index_.peers(); ++j)
    for (const topology::Neighbour& gives : index_.w(a, t).in_neighbours(j))
      open += gives.peer == index_.peer_of(a) && share_of(a, j, t) == Share::either ? 1 : 0;
  return open;
}

KeptSum Replay::kept_sum(int a, Round t, Channel channel) const {
  const int i = index_.peer_of(a);
  const topology::MixingMatrix& w = index_.w(a, t);
  if (index_.protocol.rows[channel].row_stochastic) return KeptSum::row;
  if (w.row_surplus(i) != 0) return KeptSum::column;
  const auto weight = [&w](int to, int from) {
    const auto in_neighbours = w.in_neighbours(to);
    const auto found = std::ranges::find(in_neighbours, from, &topology::Neighbour::peer);
    return found == in_neighbours.end() ? 0 : found->weight;
  };
  bool mirrored = index_.symmetric();
  if (!mirrored)
    mirrored = std::ranges::all_of(std::views::iota(0, index_.peers()),
                                   [&](int j) { return weight(i, j) == weight(j, i); });
  if (mirrored) return KeptSum::row;  // and the column's with it
  const std::vector<ChannelSpec> channels =
      channels_of(index_.protocol.rows, static_cast<std::size_t>(index_.scenario.length));
  if (index_.protocol.policy != Policy::sync || !channels[channel].conserves_sum)
    return KeptSum::row;
  const bool whole = !index_.incarnation(a).joins && t < index_.links().first_change(a);
  return whole ? KeptSum::row : KeptSum::either;
}

std::optional<Row> Replay::mix(int a, Round t, const ReferenceMix& own, bool columns,
                               unsigned kept_shares) {
  const topology::MixingMatrix& w = index_.w(a, t);
  const int i = index_.peer_of(a);
  const double row_sum =
      index_.protocol.rows[own.channel].row_stochastic ? 1 + w.row_surplus(i) : 1;
  double own_weight = w.self_weight(i);
  unsigned open = 0;
  for (int j = 0; j < index_.peers() && columns; ++j)
    for (const topology::Neighbour& gives : w.in_neighbours(j)) {
      if (gives.peer != i) continue;
      const Share share = share_of(a, j, t);
      if (share == Share::kept || (share == Share::either && (kept_shares >> open++ & 1U) == 1))
        own_weight += gives.weight;
    }
  Row out = own.in;
  for (double& value : out) value *= columns ? own_weight : 1;
  scale_ = own.in;
  for (double& value : scale_) value = std::abs(value);
  for (const topology::Neighbour& j : w.in_neighbours(i)) {
    const UsedRow& used = index_.used(a, t, own.channel, j.peer);
    if (used.values == 0) continue;
    const ReferenceMix* theirs = index_.mix(used.incarnation, used.round, own.channel);
    if (theirs == nullptr || theirs->in.size() != own.in.size()) return std::nullopt;
    for (std::size_t k = 0; k < used.values; ++k) {
      out[k] += j.weight / row_sum * (theirs->sent[k] - (columns ? 0 : own.sent[k]));
      scale_[k] = std::max(scale_[k], std::abs(theirs->sent[k]) + theirs->slack);
    }
  }
  return out;
}

double Replay::bound(int a, Round t, const ReferenceMix& own, std::size_t k) const {
  const auto neighbours = index_.w(a, t).in_neighbours(index_.peer_of(a)).size();
  return 4 * (static_cast<double>(neighbours) + 4) * kRounding * (scale_[k] + own.slack) + 1e-37;
}

namespace {

/// How far the peer's result is from a replayed one.
struct Distance {
  double worst = 0;  ///< as a fraction of the bound, over all values
  std::string sentence;
};

Distance distance_to(const TraceIndex& index, const Replay& replay, int a, Round t,
                     const ReferenceMix& own, const Row& due) {
  Distance distance;
  for (std::size_t k = 0; k < due.size(); ++k) {
    const double bound = replay.bound(a, t, own, k), error = std::abs(own.out[k] - due[k]);
    const double fraction = error / bound;
    if (fraction <= distance.worst) continue;  // no NaN is
    distance.worst = fraction;
    if (!(fraction <= 1))
      distance.sentence = fmt::format(
          "peer {} has {:.9g} at value {} of channel {} after round {}, where {:.9g} was due, to "
          "{:.2g}",
          index.peer_of(a), own.out[k], k, own.channel, t, due[k], bound);
  }
  return distance;
}

}  // namespace

void check_replay(const TraceIndex& index, Checks& checks) {
  Replay replay(index);
  for (const auto& [key, own] : index.mixes()) {
    const auto& [a, t, channel] = key;
    if (own.in.empty() || own.out.empty()) continue;
    const KeptSum kept_sum = replay.kept_sum(a, t, channel);
    const unsigned open = kept_sum == KeptSum::row ? 0 : replay.open_shares(a, t);
    double least = std::numeric_limits<double>::infinity();
    std::string sentence =
        fmt::format("peer {} mixed in round {} a row that no peer sent", index.peer_of(a), t);
    // Choice 0 keeps the row's sum; each further choice keeps the column's, with other open shares.
    const unsigned first = kept_sum == KeptSum::column ? 1 : 0,
                   end = kept_sum == KeptSum::row ? 1 : (1U << open) + 1;
    for (unsigned choice = first; choice < end; ++choice) {
      const auto due = replay.mix(a, t, own, choice > 0, choice - 1);
      if (!due) break;
      const Distance distance = distance_to(index, replay, a, t, own, *due);
      if (distance.worst < least && !distance.sentence.empty()) sentence = distance.sentence;
      least = std::min(least, distance.worst);
    }
    checks.expect(least <= 1, "replay", "{}", sentence);
    checks.report.rounding = std::max(checks.report.rounding, least);
  }
}

}  // namespace gossamer::simulator
