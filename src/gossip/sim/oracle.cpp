#include "gossip/sim/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gossip/sim/judge.hpp"
#include "gossip/sim/process.hpp"

namespace gossamer::gossip::sim {

void Judge::judge_faults() {
  hold(trace_.complaints.empty(), "faults", "{}", trace_.complaints.empty() ? "" : trace_.complaints.front());
}

/// From round to round a peer keeps what it has, but where rows begin again.
void Judge::judge_chains() {
  for (int i = 0; i < n_; ++i) {
    const RoundRecord* before = nullptr;
    for (const RoundRecord& record : peer(i).rounds) {
      for (std::size_t k = 0; k < parts_.rows.size(); ++k) {
        const RowSpec& spec = parts_.rows[k];
        const bool parameters = spec.initial == RowSpec::Initial::parameters;
        if (before == nullptr || (record.restarted && spec.rejoin == RowSpec::Rejoin::restart && spec.survives)) {
          FloatRow due(static_cast<std::size_t>(scenario_.length), 0.0F);
          if (parameters) due = before == nullptr ? start_of(scenario_, i) : record.begin[0];
          due.resize(due.size() + spec.extra, 1.0F);
          hold(record.begin[k] == due, "chain", "peer {} did not begin with row {} as it is due in round {}", i, spec.name,
               record.round);
        } else if (spec.survives) {
          hold(record.begin[k] == before->end[k], "chain", "peer {} changed row {} between rounds {} and {}", i, spec.name,
               before->round, record.round);
        }
      }
      hold(before == nullptr
               ? record.round == 0
               : record.round > before->round && (record.round == before->round + 1 || parts_.policy == Policy::deadline),
           "chain", "peer {} did round {} out of turn", i, record.round);
      before = &record;
    }
  }
}

void Judge::judge_log() {
  for (const auto& [key, used] : used_) {
    const auto& [i, t, channel, j] = key;
    const bool whole = used.values == width(channel);
    const Round lost = lost_in(i, j);
    if (lost < t)
      hold(used.values == 0, "log", "peer {} used {} values of peer {} in round {}, though their link was lost in round {}",
           i, used.values, j, t, lost);
    switch (parts_.policy) {
      case Policy::sync:
        hold(used.round == t && (whole || lost <= t), "log",
             "peer {} used {} values of round {} of peer {} in round {}, though their link was there", i, used.values,
             used.round, j, t);
        break;
      case Policy::deadline:
        hold(used.round == t && (whole || used.values == 0), "log",
             "peer {} used {} values of round {} of peer {} in round {}", i, used.values, used.round, j, t);
        break;
      case Policy::stale: {
        const auto bound = static_cast<Round>(scenario_.staleness);
        const Round done_by_it = used.values == 0 ? 0 : used.round;
        hold(lost <= t || t + 1 <= done_by_it + bound, "log",
             "peer {} mixed round {} of peer {} in round {}, more than {} behind", i, done_by_it, j, t, bound);
        [[fallthrough]];
      }
      case Policy::async:
        hold(whole || used.values == 0, "log", "peer {} used part of a row of peer {} in round {}", i, j, t);
        if (used.values == 0) break;
        Round& newest = newest_[{i, channel, j}];
        hold(used.round >= newest, "log", "peer {} used round {} of peer {} in round {}, after round {}", i, used.round, j, t,
             newest);
        newest = std::max(newest, used.round);
    }
  }
}

/// What i used of j and j of i, where both have done the round.
void Judge::judge_edges() {
  if (!synchronous() || !symmetric_) return;
  for (const auto& [key, used] : used_) {
    const auto& [i, t, channel, j] = key;
    if (i > j || !peer(j).alive) continue;
    const auto back = used_.find({j, t, channel, i});
    if (back == used_.end() && settled(j, t)) continue;  // not symmetric in this round
    const std::size_t theirs = back == used_.end() ? 0 : back->second.values;
    if (back == used_.end() && !skipped(j, t)) continue;  // its process goes on later, or it never came so far
    const Round first = std::min(lost_in(i, j), lost_in(j, i)), second = std::max(lost_in(i, j), lost_in(j, i));
    const bool while_breaking = first <= t && (second == kNever || t <= second);
    hold(used.values == theirs || while_breaking, "edges",
         "in round {} peer {} used {} values of peer {}, and that one {} (channel {})", t, i, used.values, j, theirs,
         channel);
    if (used.values != theirs) ++verdict_.one_sided;
  }
}
bool Judge::skipped(int i, Round t) const {
  return std::ranges::any_of(peer(i).skipped, [t](const Deviation& deviation) { return deviation.round == t; });
}

/// Σ of what i's mix adds: W's formula on what was used, value by value.
std::optional<Row> Judge::replayed(int i, Round t, const MixForm& own, unsigned kept_shares) {
  const topology::MixingMatrix* matrix = &w(t);
  const bool columns = matrix->row_surplus(i) != 0;
  Row out = own.in;
  double own_weight = matrix->self_weight(i);
  unsigned share = 0;
  if (columns)
    for (int j = 0; j < n_; ++j)
      for (const topology::Neighbour& gives : matrix->hears(j))
        if (gives.peer == i && (lost_in(i, j) < t || (lost_in(i, j) == t && (kept_shares >> share++ & 1U) == 1)))
          own_weight += gives.weight;
  for (double& value : out) value *= columns ? own_weight : 1;
  scale_ = own.in;
  for (double& value : scale_) value = std::abs(value);
  for (const topology::Neighbour& j : matrix->hears(i)) {
    const Used& used = used_.at({i, t, own.channel, j.peer});
    if (used.values == 0) continue;
    const MixForm* theirs = mix(j.peer, used.round, own.channel);
    if (theirs == nullptr || theirs->in.size() != own.in.size()) return std::nullopt;
    for (std::size_t k = 0; k < used.values; ++k) {
      out[k] += j.weight * (theirs->in[k] - (columns ? 0 : own.in[k]));
      scale_[k] = std::max(scale_[k], std::abs(theirs->in[k]) + theirs->slack);
    }
  }
  return out;
}

void Judge::judge_replay() {
  for (const auto& [key, own] : mixes_) {
    const auto& [i, t, channel] = key;
    if (own.in.empty() || own.out.empty()) continue;
    const double terms = 4 * (static_cast<double>(w(t).hears(i).size()) + 4);
    // A peer that keeps what it gave to a lost one does so from the first mix that it begins after the loss: in the round of
    // the loss, either.
    unsigned open = 0;
    for (int j = 0; j < n_; ++j) open += w(t).row_surplus(i) != 0 && lost_in(i, j) == t ? 1 : 0;
    double least = std::numeric_limits<double>::infinity();
    std::string sentence = fmt::format("peer {} mixed in round {} a row that nobody sent", i, t);
    for (unsigned kept = 0; kept < 1U << open; ++kept) {
      const auto due = replayed(i, t, own, kept);
      if (!due) break;
      double worst = 0;
      for (std::size_t k = 0; k < due->size(); ++k) {
        const double bound = terms * kRounding * (scale_[k] + own.slack) + 1e-37, error = std::abs(own.out[k] - (*due)[k]);
        if (const double part = error / bound; !(part <= worst)) {
          worst = part;
          if (!(part <= 1) && worst < least)
            sentence =
                fmt::format("peer {} has {:.9g} at value {} of channel {} after round {}, where {:.9g} was due, to {:.2g}", i,
                            own.out[k], k, channel, t, (*due)[k], bound);
        }
      }
      least = std::min(least, worst);
    }
    hold(least <= 1, "replay", "{}", sentence);
    verdict_.rounding = std::max(verdict_.rounding, least);
  }
}

/// Where both ends agree, what an edge gives to one end it takes from the other.
void Judge::judge_mean() {
  if (!synchronous()) return;
  std::vector<Row> drifts(parts_.rows.size());
  for (Round t = 0; t < last_; ++t)
    for (std::size_t c = 0; c < parts_.rows.size(); ++c) {
      if (!parts_.rows[c].mixed) continue;
      const auto channel = static_cast<Channel>(c);
      Row sum(width(channel)), sided(width(channel));
      double scale = 0;
      bool any = false, complete = true;
      for (int i = 0; i < n_; ++i) {
        const MixForm* own = mix(i, t, channel);
        if (own == nullptr || own->in.empty() || own->out.empty()) {
          complete = false;
          continue;
        }
        any = true;
        const auto out = replayed(i, t, *own, 0);
        if (!out) return;  // the replay says so
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += (*out)[k] - own->in[k], scale = std::max(scale, scale_[k]);
        for (const topology::Neighbour& j : w(t).hears(i)) {
          const std::size_t ours = used_.at({i, t, channel, j.peer}).values;
          const auto back = used_.find({j.peer, t, channel, i});
          const std::size_t theirs = back == used_.end() ? 0 : back->second.values;
          complete = complete && ours == sum.size();
          const MixForm* other = mix(j.peer, t, channel);
          for (std::size_t k = theirs; k < ours; ++k) sided[k] += j.weight * (other->in[k] - own->in[k]);
        }
      }
      if (!any || !(symmetric_ || complete)) continue;
      double most = 0;
      for (std::size_t k = 0; k < sum.size(); ++k) most = std::max(most, std::abs(sum[k] - (symmetric_ ? sided[k] : 0)));
      hold(most <= 1e-12 * n_ * std::max(scale, 1.0), "mean",
           "round {} changed the sum over the peers on channel {} by {:.3g}", t, channel, most);
      if (drifts[c].empty()) drifts[c].resize(sum.size());
      for (std::size_t k = 0; symmetric_ && k < sum.size(); ++k) drifts[c][k] += sided[k] / n_;
    }
  for (const Row& drift : drifts) {
    double squares = 0;
    for (const double value : drift) squares += value * value;
    verdict_.drift = std::max(verdict_.drift, std::sqrt(squares));
  }
}

Verdict judge(const Scenario& scenario, const Parts& parts, const Trace& trace) { return Judge(scenario, parts, trace).verdict(); }

}  // namespace gossamer::gossip::sim
