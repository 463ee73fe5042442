#include "simulator/oracle/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "simulator/oracle/judge.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::gossip::sim {

void Judge::judge_faults() {
  hold(trace_.complaints.empty(), "faults", "{}",
       trace_.complaints.empty() ? "" : trace_.complaints.front());
}

/// A peer that joins begins with what a partner had at the beginning of its last round before.
bool Judge::takes_over(int a, const RoundRecord& first) const {
  const auto gave = [&](const Life& giver) {
    const RoundRecord* last = nullptr;
    for (const RoundRecord& record : giver.rounds)
      if (record.round < first.round) last = &record;
    if (last == nullptr) return false;
    for (std::size_t k = 0; k < parts_.rows.size(); ++k)
      if (parts_.rows[k].is_transferred() && last->begin[k] != first.begin[k]) return false;
    return true;
  };
  return std::ranges::any_of(trace_.lives, [&](const Life& giver) {
    return term_at(a, giver.peer, first.round) != nullptr && gave(giver);
  });
}

/// Nobody whom a peer has a link to counts in a round.
bool Judge::is_alone(int a, Round t) const {
  for (const int j : parts_.algorithm->partners(peer_of(a), *parts_.schedule))
    if (const Term* term = term_at(a, j, t);
        term != nullptr && term->holds(t) && t >= term->entered)
      return false;
  return true;
}

/// From round to round a peer keeps what it has, but where rows begin again.
void Judge::judge_chains() {
  const bool keeps_sums = std::ranges::any_of(parts_.rows, &RowSpec::conserved_sum);
  for (int a = 0; a < lives(); ++a) {
    const RoundRecord* before = nullptr;
    const int i = peer_of(a);
    for (const RoundRecord& record : life(a).rounds) {
      const bool joins = before == nullptr && life(a).joins;
      if (joins)
        hold(takes_over(a, record), "chain",
             "peer {} joined in round {} with rows that no partner had", i, record.round);
      for (std::size_t k = 0; k < parts_.rows.size(); ++k) {
        const RowSpec& spec = parts_.rows[k];
        const bool parameters = spec.initial == RowSpec::Initial::parameters;
        const bool starts = before == nullptr && (!joins || !spec.is_transferred());
        if (spec.survives && (starts || (record.restarted && keeps_sums &&
                                         spec.rejoin == RowSpec::Rejoin::restart))) {
          FloatRow due;
          if (parameters) {
            due = before == nullptr && !joins ? start_of(scenario_, i) : record.begin[0];
            due.resize(static_cast<std::size_t>(scenario_.length));
          }
          due.resize(width(static_cast<Channel>(k)) - spec.extra, 0.0F);
          due.resize(width(static_cast<Channel>(k)), spec.extra_start);
          hold(record.begin[k] == due, "chain",
               "peer {} did not begin with row {} as it is due in round {}", i, spec.name,
               record.round);
        } else if (spec.survives && !joins) {
          hold(record.begin[k] == before->end[k], "chain",
               "peer {} changed row {} between rounds {} and {}", i, spec.name, before->round,
               record.round);
        }
      }
      bool in_turn = before == nullptr ? record.round == 0 || joins : record.round > before->round;
      if (before != nullptr && parts_.policy != Policy::deadline)
        for (Round t = before->round + 1; t < record.round; ++t)
          in_turn = in_turn && is_alone(a, t);
      hold(in_turn, "chain", "peer {} did round {} out of turn", i, record.round);
      before = &record;
    }
  }
}

void Judge::judge_log() {
  std::map<std::tuple<int, Channel, int, const Term*>, Round> newest;
  for (const auto& [key, used] : used_) {
    const auto& [a, t, channel, j] = key;
    const int i = peer_of(a);
    const bool whole = used.values == width(channel);
    const Term* term = term_at(a, j, t);
    const bool there = term != nullptr && term->holds(t);
    if (!there)
      hold(used.values == 0, "log",
           "peer {} used {} values of peer {} in round {}, though there was no link between them",
           i, used.values, j, t);
    const bool counts = there && t >= term->entered, breaks = there && t == term->lost;
    switch (parts_.policy) {
      case Policy::sync:
        hold(used.round == t && (whole || !counts || breaks), "log",
             "peer {} used {} values of round {} of peer {} in round {}, though their link was "
             "there",
             i, used.values, used.round, j, t);
        break;
      case Policy::deadline:
        hold(used.round == t && (whole || used.values == 0), "log",
             "peer {} used {} values of round {} of peer {} in round {}", i, used.values,
             used.round, j, t);
        break;
      case Policy::stale: {
        const auto bound = static_cast<Round>(scenario_.staleness);
        const Round done_by_it = used.values == 0 ? 0 : used.round;
        hold(!counts || breaks || t + 1 <= done_by_it + bound, "log",
             "peer {} mixed round {} of peer {} in round {}, more than {} behind", i, done_by_it, j,
             t, bound);
        [[fallthrough]];
      }
      case Policy::async:
        hold(whole || used.values == 0, "log", "peer {} used part of a row of peer {} in round {}",
             i, j, t);
        if (used.values == 0) break;
        Round& last = newest[{a, channel, j, term}];
        hold(used.round >= last, "log",
             "peer {} used round {} of peer {} in round {}, after round {}", i, used.round, j, t,
             last);
        last = std::max(last, used.round);
    }
  }
}

/// What a used of b and b of a, where both have done the round.
void Judge::judge_edges() {
  if (!synchronous() || !symmetric_) return;
  for (const auto& [key, used] : used_) {
    const auto& [a, t, channel, j] = key;
    const int i = peer_of(a), b = used.life;
    const Term* ours = term_at(a, j, t);
    if (b < 0) continue;
    const auto back = used_.find({b, t, channel, i});
    if (i > j && back != used_.end() && back->second.life == a) continue;  // looked at from there
    if (back == used_.end() && settled(b, t)) continue;  // not symmetric in this round
    if (back == used_.end() && !skipped(b, t))
      continue;  // its process goes on later, or it never came so far
    const std::size_t theirs =
        back == used_.end() || back->second.life != a ? 0 : back->second.values;
    // Who was told of the loss in this round took what had come by then, and the other end may have
    // it all: in no other round.
    const Term* other = other_end(a, *ours);
    const Term* less = used.values < theirs ? ours : other;
    hold(used.values == theirs || (less != nullptr && less->lost == t), "edges",
         "in round {} peer {} used {} values of peer {}, and that one {} (channel {})", t, i,
         used.values, j, theirs, channel);
    if (used.values != theirs) ++verdict_.one_sided;
  }
}
bool Judge::skipped(int a, Round t) const {
  return std::ranges::any_of(life(a).skipped,
                             [t](const Deviation& deviation) { return deviation.round == t; });
}

/// Whether what a gives to j in round t went to it, or stayed. In the round of a loss it may have
/// been either, and before the link counts again too: a began that round because it had proposed
/// it, and j could not.
Judge::Share Judge::share_of(int a, int j, Round t) const {
  const Term* term = term_at(a, j, t);
  if (term == nullptr || !term->holds(t)) return Share::kept;
  if (t == term->lost) return Share::either;
  return t >= term->entered ? Share::given : Share::either;
}

/// Which sums to 1 of what is left of W at a peer: the row, or the column, and with it the sum over
/// the peers. From the first change of a link of its own on either may: that depends on what the
/// peer knows of links elsewhere.
Judge::Kept Judge::kept_by(int a, Round t, Channel channel) const {
  const int i = peer_of(a);
  if (w(t).row_surplus(i) != 0) return Kept::column;
  const auto weight = [&](int to, int from) {
    const auto in_neighbours = w(t).in_neighbours(to);
    const auto found = std::ranges::find(in_neighbours, from, &topology::Neighbour::peer);
    return found == in_neighbours.end() ? 0 : found->weight;
  };
  bool mirrored = symmetric_;
  if (!symmetric_)
    mirrored = std::ranges::all_of(std::views::iota(0, n_),
                                   [&](int j) { return weight(i, j) == weight(j, i); });
  if (mirrored) return Kept::row;  // it keeps both
  if (parts_.policy != Policy::sync || !rows_that_keep_sums(parts_.rows)[channel]) return Kept::row;
  const auto changed = changed_.find(a);
  const bool whole = !life(a).joins && (changed == changed_.end() || t < changed->second);
  return whole ? Kept::row : Kept::either;
}

/// Σ of what a's mix adds: W's formula on what was used, value by value.
std::optional<Row> Judge::replayed(int a, Round t, const MixForm& own, bool columns,
                                   unsigned kept_shares) {
  const topology::MixingMatrix* matrix = &w(t);
  const int i = peer_of(a);
  Row out = own.in;
  double own_weight = matrix->self_weight(i);
  unsigned open = 0;
  if (columns)
    for (int j = 0; j < n_; ++j)
      for (const topology::Neighbour& gives : matrix->in_neighbours(j)) {
        if (gives.peer != i) continue;
        const Share share = share_of(a, j, t);
        if (share == Share::kept || (share == Share::either && (kept_shares >> open++ & 1U) == 1))
          own_weight += gives.weight;
      }
  for (double& value : out) value *= columns ? own_weight : 1;
  scale_ = own.in;
  for (double& value : scale_) value = std::abs(value);
  for (const topology::Neighbour& j : matrix->in_neighbours(i)) {
    const Used& used = used_.at({a, t, own.channel, j.peer});
    if (used.values == 0) continue;
    const MixForm* theirs = mix(used.life, used.round, own.channel);
    if (theirs == nullptr || theirs->in.size() != own.in.size()) return std::nullopt;
    for (std::size_t k = 0; k < used.values; ++k) {
      out[k] += j.weight * (theirs->said[k] - (columns ? 0 : own.said[k]));
      scale_[k] = std::max(scale_[k], std::abs(theirs->said[k]) + theirs->slack);
    }
  }
  return out;
}

void Judge::judge_replay() {
  for (const auto& [key, own] : mixes_) {
    const auto& [a, t, channel] = key;
    if (own.in.empty() || own.out.empty()) continue;
    const int i = peer_of(a);
    const double terms = 4 * (static_cast<double>(w(t).in_neighbours(i).size()) + 4);
    const Kept what = kept_by(a, t, channel);
    unsigned open = 0;
    for (int j = 0; j < n_ && what != Kept::row; ++j)
      for (const topology::Neighbour& gives : w(t).in_neighbours(j))
        open += gives.peer == i && share_of(a, j, t) == Share::either ? 1 : 0;
    double least = std::numeric_limits<double>::infinity();
    std::string sentence = fmt::format("peer {} mixed in round {} a row that nobody sent", i, t);
    // One more than there are shares that may be kept or not: the row.
    for (unsigned kept = what == Kept::column ? 1 : 0;
         kept < (what == Kept::row ? 1 : (1U << open) + 1); ++kept) {
      const auto due = replayed(a, t, own, kept > 0, kept - 1);
      if (!due) break;
      double worst = 0;
      for (std::size_t k = 0; k < due->size(); ++k) {
        const double bound = terms * kRounding * (scale_[k] + own.slack) + 1e-37,
                     error = std::abs(own.out[k] - (*due)[k]);
        if (const double part = error / bound; !(part <= worst)) {
          worst = part;
          if (!(part <= 1) && worst < least)
            sentence = fmt::format(
                "peer {} has {:.9g} at value {} of channel {} after round {}, where {:.9g} was "
                "due, to {:.2g}",
                i, own.out[k], k, channel, t, (*due)[k], bound);
        }
      }
      least = std::min(least, worst);
    }
    hold(least <= 1, "replay", "{}", sentence);
    verdict_.rounding = std::max(verdict_.rounding, least);
  }
}

Verdict judge(const Scenario& scenario, const Parts& parts, const Trace& trace) {
  return Judge(scenario, parts, trace).verdict();
}

}  // namespace gossamer::gossip::sim
