// The oracle's judgement of means: what a round's mixes make of the sum over the peers, by W's
// formula and in the rows themselves, and what links that broke may have made of the mean.
#include <algorithm>
#include <cmath>

#include "simulator/oracle/judge.hpp"

namespace gossamer::gossip::sim {

/// What the mixes of one channel in one round did to the sum over the peers, by value.
struct Judge::SumOfRound {
  Row due, had;  ///< it grew by, as W's formula has it on what was used; as the rows have it
  Row sided;     ///< of that, by edges that counted at one end
  Row broken;    ///< by which edges that broke in this round may have changed it
  Row bound;     ///< what float32 may have made of it
  double scale = 0;
  int peers = 0;
  bool complete = true;  ///< every row of every neighbour was used whole
};

/// In this round a found its link to peer j broken, or ended.
bool Judge::breaks_off(int a, int j, Round t) const {
  const Term* term = term_at(a, j, t);
  const RoundRecord* record = this->record(a, t);
  return (term != nullptr && term->lost == t) || (record != nullptr && record->end.empty());
}

/// An edge between a and b moves the sum where one end used more of the other's row than that one
/// of its own: by W_ij times the difference of the rows, in the values beyond. That may be in the
/// one round in which the end that used less found the link broken, or ended: before, it waits for
/// (or agrees on) what the other end uses, and later it sends nothing to be used.
void Judge::add_edge(int a, const topology::Neighbour& j, Round t, const MixForm& own,
                     SumOfRound& sum) {
  const Used& ours = used_.at({a, t, own.channel, j.peer});
  sum.complete = sum.complete && ours.values == own.in.size();
  if (ours.life < 0) return;
  const int b = ours.life;
  const auto back = used_.find({b, t, own.channel, peer_of(a)});
  const std::size_t theirs =
      back == used_.end() || back->second.life != a ? 0 : back->second.values;
  const MixForm* other = mix(b, t, own.channel);
  if (symmetric_ && ours.values > theirs)
    hold(breaks_off(b, peer_of(a), t), "drift",
         "peer {} used {} values of peer {} in round {}, and that one {}, though it lost no link "
         "then",
         peer_of(a), ours.values, j.peer, t, theirs);
  if (other == nullptr || other->said.size() != own.said.size()) return;
  const bool twice = !other->out.empty() && peer_of(a) > j.peer;  // it is added from the other end
  const bool broken = !twice && (breaks_off(a, j.peer, t) || breaks_off(b, peer_of(a), t));
  for (std::size_t k = 0; k < own.said.size(); ++k) {
    const double moves = j.weight * (other->said[k] - own.said[k]);
    if (k >= theirs && k < ours.values) sum.sided[k] += moves;
    if (broken) sum.broken[k] += std::abs(moves);
  }
}

std::optional<Judge::SumOfRound> Judge::sum_of_round(Round t, Channel channel) {
  const Row zero(width(channel));
  SumOfRound sum{zero, zero, zero, zero, zero};
  for (int a = 0; a < lives(); ++a) {
    const MixForm* own = mix(a, t, channel);
    if (own == nullptr || own->in.empty() || own->out.empty()) continue;
    ++sum.peers;
    const auto out = replayed(a, t, *own, w(t).row_surplus(peer_of(a)) != 0, 0);
    if (!out) return std::nullopt;  // the replay says so
    const double terms = 4 * (static_cast<double>(w(t).in_neighbours(peer_of(a)).size()) + 4);
    for (std::size_t k = 0; k < zero.size(); ++k) {
      sum.due[k] += (*out)[k] - own->in[k];
      sum.had[k] += own->out[k] - own->in[k];
      sum.bound[k] += terms * kRounding * (scale_[k] + own->slack) + 1e-37;
      sum.scale = std::max(sum.scale, scale_[k]);
    }
    for (const topology::Neighbour& j : w(t).in_neighbours(peer_of(a)))
      add_edge(a, j, t, *own, sum);
  }
  sum.complete = sum.complete && sum.peers == n_;
  return sum;
}

/// Where both ends agree, what an edge gives to one end it takes from the other: so says W's
/// formula, to 1e-12, and so do the rows, to what rounding may add up to at the peers, 4 (k + 4)
/// 2⁻²⁴ M each. With nothing taken off, the mean moves over all rounds by no more than what edges
/// can have moved it in the rounds in which they broke.
void Judge::judge_mean() {
  if (!synchronous()) return;
  for (std::size_t c = 0; c < parts_.rows.size(); ++c) {
    if (!parts_.rows[c].mixed) continue;
    const auto channel = static_cast<Channel>(c);
    Row drift(width(channel)), broken(width(channel)), bound(width(channel));
    for (Round t = 0; t < last_; ++t) {
      const auto sum = sum_of_round(t, channel);
      if (!sum) return;
      if (sum->peers == 0 || !(symmetric_ || sum->complete)) continue;
      double most = 0, part = 0;
      bool holds = true;  // no NaN does
      for (std::size_t k = 0; k < drift.size(); ++k) {
        const double sided = symmetric_ ? sum->sided[k] : 0;
        const double logged = std::abs(sum->due[k] - sided),
                     had = std::abs(sum->had[k] - sided) / sum->bound[k];
        holds = holds && logged <= 1e-12 * n_ * std::max(sum->scale, 1.0) && had <= 1;
        most = std::max(most, logged), part = std::max(part, had);
        drift[k] += sum->had[k] / n_;
        broken[k] += sum->broken[k] / n_;
        bound[k] += sum->bound[k] / n_;
      }
      hold(holds, "mean",
           "round {} changed the sum over the peers on channel {}: as logged by {:.3g}, and by "
           "{:.3g} of the bound in the rows",
           t, channel, most, part);
    }
    if (!symmetric_) continue;
    double squares = 0;
    for (std::size_t k = 0; k < drift.size(); ++k) {
      squares += drift[k] * drift[k];
      hold(std::abs(drift[k]) <= broken[k] + bound[k], "drift",
           "the mean moved by {:.3g} at value {} of channel {}, and by {:.3g} at most by links "
           "that broke",
           drift[k], k, channel, broken[k]);
    }
    verdict_.drift = std::max(verdict_.drift, std::sqrt(squares));
  }
}

}  // namespace gossamer::gossip::sim
