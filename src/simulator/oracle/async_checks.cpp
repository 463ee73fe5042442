// The oracle's judgement of algorithms that mix nothing, and go at each peer's own pace:
// asynchronous push-sum, whose peers keep account of what they gave and took, and AD-PSGD, whose
// averages of two keep the sum of the models.
#include <algorithm>
#include <cmath>

#include "simulator/oracle/judge.hpp"

namespace gossamer::gossip::sim {
namespace {

/// Rows of asynchronous push-sum: (x, w); all that the peer ever gave; of each neighbour, in the
/// order of ids, what it used last.
constexpr std::size_t kSum = 1, kGiven = 3, kFirstUsed = 4;

/// What a row in two parts is: rounded values, and what that left of them.
Row both_parts(const FloatRow& row) {
  const std::size_t half = row.size() / 2;
  Row sum(half);
  for (std::size_t k = 0; k < half; ++k)
    sum[k] = static_cast<double>(row[k]) + static_cast<double>(row[half + k]);
  return sum;
}

double part(const topology::Neighbour& neighbour) {
  return static_cast<double>(static_cast<float>(neighbour.weight));
}

bool within(double bound, double error) { return std::abs(error) <= bound; }  // no NaN is

}  // namespace

std::optional<Channel> Judge::shared() const {
  return scenario_.algorithm == "async_push_sum" ? std::optional<Channel>(kGiven) : std::nullopt;
}

/// One round's account.
struct Judge::Account {
  Row stepped;        ///< (x, w) after the peer's steps
  bool gave = false;  ///< it added that to its sum
  double kept = 1;    ///< the part of (x, w) that it did not give away, but for the next:
  std::vector<double> perhaps_given;  ///< parts of those of whom it cannot be said whether the peer
                                      ///< thought that they hear it
  Row taken;                          ///< what came of the neighbours' sums
  Row scale;                          ///< the magnitudes of all that was added up, by value
};

Time Judge::end_of(int a, const RoundRecord& record) const {
  const auto next = std::ranges::upper_bound(life(a).rounds, record.round, {}, &RoundRecord::round);
  if (next != life(a).rounds.end()) return next->began;
  return life(a).finished ? life(a).finished_at : trace_.end;
}

/// Whether j was given its part of what a gave: nobody gives to who does not count yet, or has said
/// that its rounds are done. Whom a hears, as in `last`, it gives to once it has used a sum of a
/// round in which the other end heard it.
Judge::Share Judge::part_of(int a, int j, const RoundRecord& record,
                            const std::map<int, LastUse>& last) const {
  const Term* term = term_at(a, j, record.round);
  if (term == nullptr || !term->holds(record.round)) return Share::kept;
  const Life& other = life(term->other);
  if (other.finished &&
      std::max(other.finished_at, faults_end(scenario_)) + patience_of(scenario_, parts_) <
          record.began)
    return Share::kept;
  if (record.round == term->lost || (other.finished && other.finished_at <= end_of(a, record)))
    return Share::either;
  if (term->from_start) return Share::given;
  const auto heard = last.find(j);
  const bool here = heard == last.end() || heard->second.term != term
                        ? false
                        : heard->second.round >= term->entered;
  return here ? Share::given : Share::either;
}

/// What a used of a neighbour's sum is that sum as it was after the round that the log says.
void Judge::judge_use_of_sum(int a, const RoundRecord& record, std::size_t place,
                             const Used& used) {
  const FloatRow &before = record.begin[kFirstUsed + place],
                 &after = record.end[kFirstUsed + place];
  if (used.values == 0)
    return hold(after == before, "replay", "peer {} used in round {} a sum that had not come",
                peer_of(a), record.round);
  const RoundRecord* giver = this->record(used.life, used.round);
  if (giver != nullptr && giver->end.empty())
    return;  // its process ended before the round was on record
  const FloatRow due = giver != nullptr
                           ? giver->end[kGiven]
                           : FloatRow(after.size());  // it joined later, and gave nothing yet
  hold(after == due, "replay", "peer {} used in round {} a sum that is not peer {}'s of round {}",
       peer_of(a), record.round, peer_of(used.life), used.round);
}

Judge::Account Judge::account_of(int a, const RoundRecord& record, std::map<int, LastUse>& last) {
  Account account;
  const auto steps = static_cast<std::size_t>(scenario_.local_steps);
  const FloatRow& after_steps = record.trained[2 * steps - 1].after;
  account.stepped.assign(after_steps.begin(), after_steps.end());
  account.stepped.push_back(record.begin[kSum].back());
  account.gave = record.begin[kGiven] != record.end[kGiven];
  const int i = peer_of(a);
  const topology::MixingMatrix& matrix = w(record.round);
  for (int j = 0; j < n_ && account.gave; ++j)
    for (const topology::Neighbour& ours : matrix.in_neighbours(j)) {
      if (ours.peer != i) continue;
      const Share share = part_of(a, j, record, last);
      if (share == Share::given) account.kept -= part(ours);
      if (share == Share::either) account.perhaps_given.push_back(part(ours));
    }
  account.taken.resize(account.stepped.size());
  for (const double value : account.stepped) account.scale.push_back(std::abs(value));
  std::size_t place = 0;
  for (const topology::Neighbour& j : matrix.in_neighbours(i)) {
    const Used& used = used_.at({a, record.round, kGiven, j.peer});
    if (used.life >= 0) judge_use_of_sum(a, record, place, used);
    const Row before = both_parts(record.begin[kFirstUsed + place]),
              after = both_parts(record.end[kFirstUsed + place]);
    ++place;
    const Term* term = term_at(a, j.peer, record.round);
    if (used.values == 0 || term == nullptr) continue;  // without a term, the log is wrong
    const LastUse before_this = std::exchange(last[j.peer], {term, used.round});
    const bool first =
        before_this.term != term && !term->from_start;  // it only says where to begin
    for (std::size_t k = 0; k < after.size() && !first; ++k) {
      const double came = part(j) * (after[k] - before[k]);
      account.scale[k] += std::abs(came);
      account.taken[k] += came;
    }
  }
  return account;
}

/// (x, w) is what was kept and what came, and what was given is in the peer's sum.
void Judge::judge_sums_of(int a, Total& total) {
  std::map<int, LastUse> last;
  for (const RoundRecord& record : life(a).rounds) {
    if (record.end.empty()) return;
    if (const auto wrong = wrong_push_sum_steps(scenario_, record))
      return hold(false, "replay", "in round {}, peer {} {}", record.round, peer_of(a), *wrong);
    const Account account = account_of(a, record, last);
    const double terms =
        4 * (static_cast<double>(w(record.round).in_neighbours(peer_of(a)).size()) + 4);
    const Row given_before = both_parts(record.begin[kGiven]),
              given = both_parts(record.end[kGiven]);
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
    hold(least <= 1, "replay",
         "peer {} has after round {} other sums than its steps, and what it gave and took, make: "
         "{:.3g} of the bound",
         peer_of(a), record.round, least);
    verdict_.rounding = std::max(verdict_.rounding, least);
    total.gifts += account.gave ? 1 : 0;
    const bool counts = end_of(a, record) < total.until;  // at that very time it may be known
    if (counts) total.last[a] = &record;
    for (std::size_t k = 0; k < given.size() && counts; ++k) {
      total.change[k] += record.end[kSum][k] - account.stepped[k];
      total.bound[k] += terms * kRounding * account.scale[k];
    }
    for (std::size_t k = 0; k < given.size() && account.gave; ++k)
      hold(within(8 * kRounding * account.scale[k] + 1e-37,
                  given[k] - given_before[k] - account.stepped[k]),
           "replay", "peer {} gave {:.9g} at value {} in round {}, and its sum grew by {:.9g}",
           peer_of(a), account.stepped[k], k, record.round, given[k] - given_before[k]);
    for (std::size_t k = 0; k + 1 < given.size(); ++k) {
      const double weight = record.end[kSum].back(), x = record.end[0][k];
      hold(within(4 * kRounding * std::abs(record.end[kSum][k]) + 1e-37,
                  x * weight - record.end[kSum][k]),
           "replay", "peer {} has x = {:.9g} after round {}, which is not its sum over its weight",
           peer_of(a), x, record.round);
    }
  }
}

void Judge::judge_running_sums() {
  if (!shared()) return;
  // To one that is done nobody gives, and what a sum grows by is then not under way to it.
  Total total{Row(width(kSum)), Row(width(kSum)), trace_.end, {}, 0};
  for (const Life& life : trace_.lives)
    if (life.finished) total.until = std::min(total.until, life.finished_at);
  for (int a = 0; a < lives(); ++a) judge_sums_of(a, total);
  if (undisturbed()) judge_total(total);
}

/// Nobody was lost, and all are done. Where a link was lost, the sum over all says no more than the
/// peers' accounts, each term of which judge_sums_of holds: what was under way is dropped, what is
/// given to one that is gone is kept, and rows begin again with weight 1 at each peer in a round of
/// its own. Whether the last gift before the loss was still given only the giver knows
/// (Share::either), and the exact sum would have to be told which of the possible ones it is.
bool Judge::undisturbed() const {
  return trace_.links.empty() && std::ranges::all_of(trace_.lives, [](const Life& life) {
           return life.alive && life.finished;
         });
}

/// They give, once each at least on the whole, and what has left the peers' sums is under way: what
/// they gave and the others have not used. Peers need not be looked at at one time.
void Judge::judge_total(Total& total) {
  const auto row_of = [&](int a, std::size_t row) {
    const RoundRecord* last = total.last[a];
    return both_parts(last != nullptr ? last->end[row] : life(a).rounds.front().begin[row]);
  };
  for (int a = 0; a < n_; ++a) {
    std::size_t place = kFirstUsed;
    for (const topology::Neighbour& j : w(0).in_neighbours(a)) {
      const Row given = row_of(j.peer, kGiven), used = row_of(a, place++);
      for (std::size_t k = 0; k < given.size(); ++k)
        total.change[k] += part(j) * (given[k] - used[k]);
    }
  }
  hold(total.gifts >= static_cast<Round>(n_), "totals", "the peers gave {} times in {} rounds",
       total.gifts, last_);
  for (std::size_t k = 0; k < total.change.size(); ++k)
    hold(within(total.bound[k], total.change[k]), "totals",
         "{:.3g} came to the sum over the peers at value {}, beside their steps", total.change[k],
         k);
}

/// Both ends of an average have the same bits, so the sum over the peers changes by their steps
/// alone. Some do average, though those who are asked may be done long before the others.
void Judge::judge_pairs() {
  if (scenario_.algorithm != "ad_psgd" || !undisturbed()) return;
  Round averages = 0;
  Row change(static_cast<std::size_t>(scenario_.length));
  double most = 0;
  for (const Life& life : trace_.lives) {
    for (const RoundRecord& record : life.rounds) {
      if (record.trained.size() != 1)
        return hold(false, "totals", "peer {} took {} times its steps in round {}", life.peer,
                    record.trained.size(), record.round);
      const Trained& steps = record.trained.front();
      double beside = 0;
      for (std::size_t k = 0; k < change.size(); ++k) {
        beside = std::max(beside, std::abs(static_cast<double>(record.end[0][k]) -
                                           record.begin[0][k] - steps.after[k] + steps.before[k]));
        change[k] -= static_cast<double>(steps.after[k]) - static_cast<double>(steps.before[k]);
        most = std::max({most, beside, std::abs(static_cast<double>(steps.before[k])),
                         std::abs(static_cast<double>(steps.after[k]))});
      }
      averages += beside > 1e-3 ? 1 : 0;
    }
    for (std::size_t k = 0; k < change.size(); ++k)
      change[k] += static_cast<double>(life.rounds.back().end[0][k]) -
                   static_cast<double>(life.rounds.front().begin[0][k]);
  }
  hold(averages > 0, "totals", "nobody averaged in {} rounds", last_);
  // A round of a peer is one question at most: an average at two peers, and a sum of three.
  const double bound = 8 * kRounding * most * static_cast<double>(last_) * n_;
  for (std::size_t k = 0; k < change.size(); ++k)
    hold(within(bound, change[k]), "totals",
         "{:.3g} came to the sum over the peers at value {}, beside their steps", change[k], k);
}

}  // namespace gossamer::gossip::sim
