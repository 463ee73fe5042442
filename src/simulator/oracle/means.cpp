// Checks of means: what the mixes of a round do to the sum over the peers, by W's formula and in
// the rows themselves, and how far broken links may move the mean over all rounds.
#include <algorithm>
#include <cmath>

#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/replay.hpp"

namespace gossamer::simulator {
namespace {

/// What the mixes of one channel in one round did to the sum over the peers, by value.
struct RoundSum {
  explicit RoundSum(std::size_t width)
      : due(width), had(width), one_sided(width), broken(width), bound(width) {}
  Row due;        ///< its growth by W's formula on the rows that were used
  Row had;        ///< its growth in the rows
  Row one_sided;  ///< the part of it from edges that counted at one end
  Row broken;     ///< by how much edges that broke in this round may have changed it
  Row bound;      ///< what float32 may have rounded off
  double scale = 0;
  int peers = 0;
  bool complete = true;  ///< every row of every neighbour was used whole
};

class Means {
 public:
  Means(const TraceIndex& index, Checks& checks) : index_(index), checks_(checks), replay_(index) {}

  /// Where both ends agree, an edge takes from one end what it gives to the other: by W's formula,
  /// to 1e-12, and in the rows, to the sum of the peers' rounding bounds. Without any subtraction,
  /// the mean moves over all rounds by no more than edges can have moved it in the rounds in which
  /// they broke.
  void check(Channel channel) {
    const std::size_t width = index_.width(channel);
    Row drift(width), broken(width), bound(width);
    for (Round t = 0; t < index_.rounds(); ++t) {
      const auto sum = round_sum(t, channel);
      if (!sum) return;
      if (sum->peers == 0 || !(index_.symmetric() || sum->complete)) continue;
      check_round(t, channel, *sum);
      for (std::size_t k = 0; k < width; ++k) {
        drift[k] += sum->had[k] / index_.peers();
        broken[k] += sum->broken[k] / index_.peers();
        bound[k] += sum->bound[k] / index_.peers();
      }
    }
    if (!index_.symmetric()) return;
    double squares = 0;
    for (std::size_t k = 0; k < width; ++k) {
      squares += drift[k] * drift[k];
      checks_.expect(std::abs(drift[k]) <= broken[k] + bound[k], "drift",
                     "the mean moved by {:.3g} at value {} of channel {}, and by {:.3g} at most by "
                     "links that broke",
                     drift[k], k, channel, broken[k]);
    }
    checks_.report.drift = std::max(checks_.report.drift, std::sqrt(squares));
  }

 private:
  void check_round(Round t, Channel channel, const RoundSum& sum) {
    double most = 0, fraction = 0;
    bool holds = true;  // no NaN does
    for (std::size_t k = 0; k < sum.due.size(); ++k) {
      const double one_sided = index_.symmetric() ? sum.one_sided[k] : 0;
      const double logged = std::abs(sum.due[k] - one_sided),
                   had = std::abs(sum.had[k] - one_sided) / sum.bound[k];
      holds = holds && logged <= 1e-12 * index_.peers() * std::max(sum.scale, 1.0) && had <= 1;
      most = std::max(most, logged), fraction = std::max(fraction, had);
    }
    checks_.expect(holds, "mean",
                   "round {} changed the sum over the peers on channel {}: as logged by {:.3g}, "
                   "and by {:.3g} of the bound in the rows",
                   t, channel, most, fraction);
  }

  /// Whether `a` detected in this round that its link to peer j is lost, or ended in it.
  bool breaks(int a, int j, Round t) const {
    const LinkPeriod* link = index_.links().at(a, j, t);
    const RoundRecord* record = index_.record(a, t);
    return (link != nullptr && link->lost == t) || (record != nullptr && record->end.empty());
  }

  /// An edge between `a` and b moves the sum where one end used more of the other's row than the
  /// other end used of its own: by W_ij times the difference of the rows, in the values beyond.
  /// That may occur in the one round in which the end that used less detected the loss, or ended.
  /// Before, it waits for (or agrees on) what the other end uses; later it sends nothing.
  void add_edge(int a, const topology::Neighbour& j, Round t, const ReferenceMix& own,
                RoundSum& sum) {
    const UsedRow& ours = index_.used(a, t, own.channel, j.peer);
    sum.complete = sum.complete && ours.values == own.in.size();
    if (ours.incarnation < 0) return;
    const int b = ours.incarnation, i = index_.peer_of(a);
    const UsedRow* back = index_.find_used(b, t, own.channel, i);
    const std::size_t theirs = back == nullptr || back->incarnation != a ? 0 : back->values;
    const ReferenceMix* other = index_.mix(b, t, own.channel);
    if (index_.symmetric() && ours.values > theirs)
      checks_.expect(breaks(b, i, t), "drift",
                     "peer {} used {} values of peer {} in round {}, which used {} of the other's "
                     "though it lost no link then",
                     i, ours.values, j.peer, t, theirs);
    if (other == nullptr || other->sent.size() != own.sent.size()) return;
    const bool twice = !other->out.empty() && i > j.peer;  // it is added from the other end
    const bool broken = !twice && (breaks(a, j.peer, t) || breaks(b, i, t));
    for (std::size_t k = 0; k < own.sent.size(); ++k) {
      const double moves = j.weight * (other->sent[k] - own.sent[k]);
      if (k >= theirs && k < ours.values) sum.one_sided[k] += moves;
      if (broken) sum.broken[k] += std::abs(moves);
    }
  }

  std::optional<RoundSum> round_sum(Round t, Channel channel) {
    RoundSum sum(index_.width(channel));
    for (int a = 0; a < index_.incarnations(); ++a) {
      const ReferenceMix* own = index_.mix(a, t, channel);
      if (own == nullptr || own->in.empty() || own->out.empty()) continue;
      ++sum.peers;
      const int i = index_.peer_of(a);
      const auto out = replay_.mix(a, t, *own, index_.w(a, t).row_surplus(i) != 0, 0);
      if (!out) return std::nullopt;  // check_replay reports it
      for (std::size_t k = 0; k < sum.due.size(); ++k) {
        sum.due[k] += (*out)[k] - own->in[k];
        sum.had[k] += own->out[k] - own->in[k];
        sum.bound[k] += replay_.bound(a, t, *own, k);
        sum.scale = std::max(sum.scale, replay_.scale()[k]);
      }
      for (const topology::Neighbour& j : index_.w(a, t).in_neighbours(i))
        add_edge(a, j, t, *own, sum);
    }
    sum.complete =
        sum.complete && sum.peers == std::ssize(index_.protocol.participants().at(t).peers);
    return sum;
  }

  const TraceIndex& index_;
  Checks& checks_;
  Replay replay_;
};

}  // namespace

void check_means(const TraceIndex& index, Checks& checks) {
  if (!is_synchronous(index.protocol.policy)) return;
  Means means(index, checks);
  for (std::size_t c = 0; c < index.protocol.rows.size(); ++c) {
    const RowSpec& row = index.protocol.rows[c];
    // The row-stochastic matrix of a W that is not symmetric keeps no sum over the peers.
    if (row.mixed && (!row.row_stochastic || index.symmetric()))
      means.check(static_cast<Channel>(c));
  }
}

}  // namespace gossamer::simulator
