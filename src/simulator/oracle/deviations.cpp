// Checks of the deviations from W that peers log: that they occur only where they may, and that
// both ends of an edge agree on them.
#include <algorithm>

#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/trace_index.hpp"

namespace gossamer::simulator {
namespace {

class Deviations {
 public:
  Deviations(const TraceIndex& index, Checks& checks) : index_(index), checks_(checks) {}

  void check_log() {
    for (const auto& [key, used] : index_.used()) {
      const auto& [a, t, channel, j] = key;
      const LinkPeriod* link = index_.links().at(a, j, t);
      const bool linked = link != nullptr && link->covers(t);
      if (!linked)
        checks_.expect(used.values == 0, "log",
                       "peer {} used {} values of peer {} in round {}, though there was no link "
                       "between them",
                       index_.peer_of(a), used.values, j, t);
      const bool must_count = linked && t >= link->entered && t != link->lost;
      if (is_synchronous(index_.protocol.policy))
        check_synchronous(a, t, channel, j, used, !must_count);
      else check_freshness_of_log(a, t, channel, j, used, must_count, link);
    }
  }

  /// What a used of b, and b of a, where both have done the round.
  void check_agreement() {
    if (!is_synchronous(index_.protocol.policy) || !index_.symmetric()) return;
    for (const auto& [key, used] : index_.used()) {
      const auto& [a, t, channel, j] = key;
      const int i = index_.peer_of(a), b = used.incarnation;
      if (b < 0) continue;
      const UsedRow* back = index_.find_used(b, t, channel, i);
      if (i > j && back != nullptr && back->incarnation == a) continue;  // checked from there
      if (back == nullptr && index_.completed(b, t)) continue;  // W is not symmetric in this round
      if (back == nullptr && !skipped(b, t)) continue;          // it did not get to this round
      const std::size_t theirs = back == nullptr || back->incarnation != a ? 0 : back->values;
      // An end that is notified of the loss in this round uses what has arrived by then, and the
      // other end may have received all of it. This is possible in no other round.
      const LinkPeriod* ours = index_.links().at(a, j, t);
      const LinkPeriod* less = used.values < theirs ? ours : index_.links().other_end(a, *ours);
      checks_.expect(used.values == theirs || (less != nullptr && less->lost == t), "agreement",
                     "in round {} peer {} used {} values of peer {}, which used {} of the other's "
                     "(channel {})",
                     t, i, used.values, j, theirs, channel);
      if (used.values != theirs) ++checks_.report.one_sided;
    }
  }

 private:
  void check_synchronous(int a, Round t, Channel channel, int j, const UsedRow& used,
                         bool may_be_missing) {
    const bool whole = used.values == index_.width(channel);
    if (index_.protocol.policy == Policy::sync)
      checks_.expect(used.round == t && (whole || may_be_missing), "log",
                     "peer {} used {} values of round {} of peer {} in round {}, though their link "
                     "was up",
                     index_.peer_of(a), used.values, used.round, j, t);
    else
      checks_.expect(used.round == t && (whole || used.values == 0), "log",
                     "peer {} used {} values of round {} of peer {} in round {}", index_.peer_of(a),
                     used.values, used.round, j, t);
  }

  void check_freshness_of_log(int a, Round t, Channel channel, int j, const UsedRow& used,
                              bool must_count, const LinkPeriod* link) {
    const int i = index_.peer_of(a);
    if (index_.protocol.policy == Policy::stale) {
      const auto bound = static_cast<Round>(index_.scenario.staleness);
      const Round theirs = used.values == 0 ? 0 : used.round;
      checks_.expect(!must_count || t + 1 <= theirs + bound, "log",
                     "peer {} mixed round {} of peer {} in round {}, more than {} behind", i,
                     theirs, j, t, bound);
    }
    checks_.expect(used.values == index_.width(channel) || used.values == 0, "log",
                   "peer {} used part of a row of peer {} in round {}", i, j, t);
    if (used.values == 0) return;
    Round& newest = newest_[{a, channel, j, link}];
    checks_.expect(used.round >= newest, "log",
                   "peer {} used round {} of peer {} in round {}, after round {}", i, used.round, j,
                   t, newest);
    newest = std::max(newest, used.round);
  }

  bool skipped(int a, Round t) const {
    return std::ranges::any_of(index_.incarnation(a).skipped,
                               [t](const Deviation& deviation) { return deviation.round == t; });
  }

  const TraceIndex& index_;
  Checks& checks_;
  std::map<std::tuple<int, Channel, int, const LinkPeriod*>, Round> newest_;  ///< used so far
};

}  // namespace

void check_deviations(const TraceIndex& index, Checks& checks) {
  Deviations deviations(index, checks);
  deviations.check_log();
  deviations.check_agreement();
}

}  // namespace gossamer::simulator
