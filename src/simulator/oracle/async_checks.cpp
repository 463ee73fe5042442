// Checks of the asynchronous algorithms, which mix nothing: asynchronous push-sum, whose peers keep
// account of what they gave and took, and AD-PSGD, whose pairwise averages conserve the sum of the
// models.
#include <algorithm>
#include <cmath>

#include "simulator/oracle/bounds.hpp"
#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/replay.hpp"

namespace gossamer::simulator {
namespace {

constexpr std::size_t kSum = kAsyncPushSumSum, kGiven = kAsyncPushSumGiven,
                      kUsed = kAsyncPushSumUsed;

/// A row of two parts: rounded values, and what the rounding left of them.
Row both_parts(const FloatRow& row) {
  const std::size_t half = row.size() / 2;
  Row sum(half);
  for (std::size_t k = 0; k < half; ++k)
    sum[k] = static_cast<double>(row[k]) + static_cast<double>(row[half + k]);
  return sum;
}

double weight_of(const topology::Neighbour& neighbour) {
  return static_cast<double>(static_cast<float>(neighbour.weight));
}

bool within(double bound, double error) { return std::abs(error) <= bound; }  // no NaN is

/// No link was lost, and all peers are done.
bool undisturbed(const Trace& trace) {
  return trace.links.empty() && std::ranges::all_of(trace.incarnations, [](const auto& each) {
           return each.alive && each.finished;
         });
}

class AsyncPushSum {
 public:
  AsyncPushSum(const TraceIndex& index, Checks& checks)
      : index_(index),
        checks_(checks),
        change_(index.width(kSum)),
        bound_(index.width(kSum)),
        until_(index.trace.end) {
    // No peer gives to a peer that is done, so the growth of its sum is not in flight to that one.
    for (const Incarnation& each : index.trace.incarnations)
      if (each.finished) until_ = std::min(until_, each.finished_at);
  }

  void check() {
    for (int a = 0; a < index_.incarnations(); ++a) check_accounts(a);
    // Where a link was lost, the sum over all says no more than the peers' accounts, which are
    // checked: what was in flight is dropped, what is given to a peer that is gone is kept, and
    // rows are reinitialised with weight 1, at each peer in a round of its own. Whether the last
    // gift before the loss was still given only the giver knows (Share::either).
    if (undisturbed(index_.trace)) check_total();
  }

 private:
  /// The account of one round.
  struct Account {
    Row stepped;        ///< (x, w) after the peer's steps
    bool gave = false;  ///< it added that to its sum
    double kept = 1;    ///< the part of (x, w) that it did not give away, but for `perhaps_given`
    std::vector<double> perhaps_given;  ///< parts for neighbours that may not have counted
    Row taken;                          ///< what came of the neighbours' sums
    Row scale;                          ///< the magnitudes of all that was added up, by value
  };
  /// Which of a neighbour's sums a peer used last, and over which link it came.
  struct LastUse {
    const LinkPeriod* link = nullptr;
    Round round = 0;
  };

  Time end_of(int a, const RoundRecord& record) const {
    const Incarnation& each = index_.incarnation(a);
    const auto next = std::ranges::upper_bound(each.rounds, record.round, {}, &RoundRecord::round);
    if (next != each.rounds.end()) return next->began;
    return each.finished ? each.finished_at : index_.trace.end;
  }

  /// Whether j was given its part of what `a` gave: no peer gives to one that does not count yet,
  /// or has announced that its rounds are done. To an in-neighbour, as in `last`, it gives once it
  /// has used a sum of a round in which the other end received from it.
  Share share_of(int a, int j, const RoundRecord& record,
                 const std::map<int, LastUse>& last) const {
    const LinkPeriod* link = index_.links().at(a, j, record.round);
    if (link == nullptr || !link->covers(record.round)) return Share::kept;
    const Incarnation& other = index_.incarnation(link->other);
    const bool announced = other.finished || other.stopped;
    if (announced && std::max(other.finished_at, faults_end(index_.scenario)) +
                             settling_time(index_.scenario, index_.protocol) <
                         record.began)
      return Share::kept;
    if (record.round == link->lost || (announced && other.finished_at <= end_of(a, record)))
      return Share::either;
    if (link->from_start) return Share::given;
    const auto used = last.find(j);
    const bool counts =
        used != last.end() && used->second.link == link && used->second.round >= link->entered;
    return counts ? Share::given : Share::either;
  }

  /// What `a` used of a neighbour's sum is that sum as it was after the round that the log says.
  void check_used_sum(int a, const RoundRecord& record, std::size_t place, const UsedRow& used) {
    const FloatRow &before = record.begin[kUsed + place], &after = record.end[kUsed + place];
    if (used.values == 0)
      return checks_.expect(after == before, "replay",
                            "peer {} used in round {} a sum that had not arrived",
                            index_.peer_of(a), record.round);
    const RoundRecord* giver = index_.record(used.incarnation, used.round);
    if (giver != nullptr && giver->end.empty())
      return;  // its process ended before the round was recorded
    // A giver without that round joined later, and had given nothing yet.
    const FloatRow due = giver != nullptr ? giver->end[kGiven] : FloatRow(after.size());
    checks_.expect(after == due, "replay",
                   "peer {} used in round {} a sum that is not peer {}'s of round {}",
                   index_.peer_of(a), record.round, index_.peer_of(used.incarnation), used.round);
  }

  Account account_of(int a, const RoundRecord& record, std::map<int, LastUse>& last) {
    Account account;
    const auto steps = static_cast<std::size_t>(index_.scenario.steps.local_steps);
    const FloatRow& after_steps = record.trained[2 * steps - 1].after;
    account.stepped.assign(after_steps.begin(), after_steps.end());
    account.stepped.push_back(record.begin[kSum].back());
    account.gave = record.begin[kGiven] != record.end[kGiven];
    const topology::MixingMatrix& w = index_.w(a, record.round);
    for (int j = 0; j < index_.peers() && account.gave; ++j)
      for (const topology::Neighbour& ours : w.in_neighbours(j)) {
        if (ours.peer != index_.peer_of(a)) continue;
        const Share share = share_of(a, j, record, last);
        if (share == Share::given) account.kept -= weight_of(ours);
        if (share == Share::either) account.perhaps_given.push_back(weight_of(ours));
      }
    add_taken(a, record, last, account);
    return account;
  }

  void add_taken(int a, const RoundRecord& record, std::map<int, LastUse>& last, Account& account) {
    account.taken.resize(account.stepped.size());
    for (const double value : account.stepped) account.scale.push_back(std::abs(value));
    std::size_t place = 0;
    for (const topology::Neighbour& j :
         index_.w(a, record.round).in_neighbours(index_.peer_of(a))) {
      const UsedRow& used = index_.used(a, record.round, kGiven, j.peer);
      if (used.incarnation >= 0) check_used_sum(a, record, place, used);
      const Row before = both_parts(record.begin[kUsed + place]),
                after = both_parts(record.end[kUsed + place]);
      ++place;
      const LinkPeriod* link = index_.links().at(a, j.peer, record.round);
      if (used.values == 0 || link == nullptr) continue;  // without a link, the log is wrong
      const LastUse before_this = std::exchange(last[j.peer], {link, used.round});
      // The first sum over a restored link only says where to begin.
      if (before_this.link != link && !link->from_start) continue;
      for (std::size_t k = 0; k < after.size(); ++k) {
        const double came = weight_of(j) * (after[k] - before[k]);
        account.scale[k] += std::abs(came);
        account.taken[k] += came;
      }
    }
  }

  /// (x, w) is what was kept and what came, and what was given is in the peer's sum.
  void check_accounts(int a) {
    std::map<int, LastUse> last;
    for (const RoundRecord& record : index_.incarnation(a).rounds) {
      if (record.end.empty()) return;
      if (const auto wrong = wrong_push_sum_steps(index_.scenario, record))
        return checks_.expect(false, "replay", "in round {}, peer {} {}", record.round,
                              index_.peer_of(a), *wrong);
      const Account account = account_of(a, record, last);
      const auto neighbours = index_.w(a, record.round).in_neighbours(index_.peer_of(a)).size();
      const double terms = 4 * (static_cast<double>(neighbours) + 4);
      check_kept(a, record, account, terms);
      check_given(a, record, account);
      gifts_ += account.gave ? 1 : 0;
      if (end_of(a, record) >= until_) continue;  // at that very time a peer may be known as done
      last_[a] = &record;
      for (std::size_t k = 0; k < account.stepped.size(); ++k) {
        change_[k] += record.end[kSum][k] - account.stepped[k];
        bound_[k] += terms * kRounding * account.scale[k];
      }
    }
  }

  /// For some choice of the parts that were perhaps given.
  void check_kept(int a, const RoundRecord& record, const Account& account, double terms) {
    const std::size_t shares = account.perhaps_given.size();
    double least = std::numeric_limits<double>::infinity();
    for (unsigned choice = 0; choice < 1U << shares; ++choice) {
      double kept = account.kept, worst = 0;
      for (std::size_t k = 0; k < shares; ++k)
        kept -= (choice >> k & 1U) == 1 ? account.perhaps_given[k] : 0;
      for (std::size_t k = 0; k < account.stepped.size(); ++k) {
        const double due = kept * account.stepped[k] + account.taken[k];
        worst = std::max(worst, std::abs(record.end[kSum][k] - due) /
                                    (terms * kRounding * account.scale[k] + 1e-37));
      }
      least = std::min(least, worst);
    }
    checks_.expect(least <= 1, "replay",
                   "peer {} has after round {} other sums than its steps, and what it gave and "
                   "took, make: {:.3g} of the bound",
                   index_.peer_of(a), record.round, least);
    checks_.report.rounding = std::max(checks_.report.rounding, least);
  }

  void check_given(int a, const RoundRecord& record, const Account& account) {
    const Row before = both_parts(record.begin[kGiven]), given = both_parts(record.end[kGiven]);
    for (std::size_t k = 0; k < given.size() && account.gave; ++k)
      checks_.expect(within(8 * kRounding * account.scale[k] + 1e-37,
                            given[k] - before[k] - account.stepped[k]),
                     "replay",
                     "peer {} gave {:.9g} at value {} in round {}, and its sum grew by {:.9g}",
                     index_.peer_of(a), account.stepped[k], k, record.round, given[k] - before[k]);
    for (std::size_t k = 0; k + 1 < given.size(); ++k) {
      const double weight = record.end[kSum].back(), x = record.end[0][k],
                   sum = record.end[kSum][k];
      checks_.expect(within(4 * kRounding * std::abs(sum) + 1e-37, x * weight - sum), "replay",
                     "peer {} has x = {:.9g} after round {}, which is not its sum over its weight",
                     index_.peer_of(a), x, record.round);
    }
  }

  /// Peers give, at least once each on average, and what has left their sums is in flight: what
  /// they gave and the others have not used. Peers need not be looked at at one time.
  void check_total() {
    const auto row_of = [&](int a, std::size_t row) {
      const RoundRecord* last = last_[a];
      return both_parts(last != nullptr ? last->end[row]
                                        : index_.incarnation(a).rounds.front().begin[row]);
    };
    for (int a = 0; a < index_.peers(); ++a) {
      std::size_t place = kUsed;
      for (const topology::Neighbour& j : index_.w(a, 0).in_neighbours(a)) {
        const Row given = row_of(j.peer, kGiven), used = row_of(a, place++);
        for (std::size_t k = 0; k < given.size(); ++k)
          change_[k] += weight_of(j) * (given[k] - used[k]);
      }
    }
    checks_.expect(gifts_ >= static_cast<Round>(index_.peers()), "totals",
                   "the peers gave {} times in {} rounds", gifts_, index_.rounds());
    for (std::size_t k = 0; k < change_.size(); ++k)
      checks_.expect(within(bound_[k], change_[k]), "totals",
                     "{:.3g} came to the sum over the peers at value {}, beside their steps",
                     change_[k], k);
  }

  const TraceIndex& index_;
  Checks& checks_;
  // Until the first peer was done:
  Row change_;  ///< of the peers' sums beside their steps
  Row bound_;   ///< what rounding may have made of it
  Time until_;
  std::map<int, const RoundRecord*> last_;  ///< by incarnation
  Round gifts_ = 0;                         ///< rounds in which a peer gave, to the end
};

/// What averages made of a peer's models, beside its steps.
struct Averages {
  Round count = 0;
  double largest = 0;  ///< value of any model
};

/// Adds to `change` what a peer's models gained beside its steps. False: it did not train as it is
/// due.
bool add_change(const Incarnation& peer, Row& change, Averages& averages, Checks& checks) {
  for (const RoundRecord& record : peer.rounds) {
    if (record.trained.size() != 1) {
      checks.expect(false, "totals", "peer {} took {} times its steps in round {}", peer.peer,
                    record.trained.size(), record.round);
      return false;
    }
    const TrainRecord& steps = record.trained.front();
    double beside = 0;
    for (std::size_t k = 0; k < change.size(); ++k) {
      const auto before = static_cast<double>(steps.before[k]),
                 after = static_cast<double>(steps.after[k]);
      beside = std::max(beside, std::abs(static_cast<double>(record.end[0][k]) -
                                         record.begin[0][k] - steps.after[k] + steps.before[k]));
      change[k] -= after - before;
      averages.largest = std::max({averages.largest, beside, std::abs(before), std::abs(after)});
    }
    averages.count += beside > 1e-3 ? 1 : 0;
  }
  for (std::size_t k = 0; k < change.size(); ++k)
    change[k] += static_cast<double>(peer.rounds.back().end[0][k]) -
                 static_cast<double>(peer.rounds.front().begin[0][k]);
  return true;
}

}  // namespace

/// Which of its neighbours' sums a peer had used when it stopped is in no trace of the resumed run.
void check_async_push_sum(const TraceIndex& index, Checks& checks) {
  if (index.trace.resumption) return;
  if (index.shared()) AsyncPushSum(index, checks).check();
}

/// Both ends of an average have the same bits, so the sum over the peers changes by their steps
/// alone. Some peers do average, though those that are asked may be done long before the others.
void check_ad_psgd(const TraceIndex& index, Checks& checks) {
  if (index.scenario.algorithm != "ad_psgd" || !undisturbed(index.trace)) return;
  Row change(static_cast<std::size_t>(index.scenario.length));
  Averages averages;
  for (const Incarnation& peer : index.trace.incarnations)
    if (!add_change(peer, change, averages, checks)) return;
  checks.expect(averages.count > 0, "totals", "no two peers averaged in {} rounds", index.rounds());
  // A round of a peer is one question at most: an average at two peers, and a sum of three.
  const double bound =
      8 * kRounding * averages.largest * static_cast<double>(index.rounds()) * index.peers();
  for (std::size_t k = 0; k < change.size(); ++k)
    checks.expect(within(bound, change[k]), "totals",
                  "{:.3g} came to the sum over the peers at value {}, beside their steps",
                  change[k], k);
}

}  // namespace gossamer::simulator
