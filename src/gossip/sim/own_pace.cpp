// The oracle's judgement of algorithms that mix nothing, and go at each peer's own pace: asynchronous push-sum, whose peers keep
// account of what they gave and took, and AD-PSGD, whose averages of two keep the sum of the models.
#include <algorithm>
#include <cmath>

#include "gossip/sim/judge.hpp"

namespace gossamer::gossip::sim {
namespace {

/// Rows of asynchronous push-sum: (x, w); all that the peer ever gave; of each neighbour, in the order of ids, what it used last.
constexpr std::size_t kSum = 1, kGiven = 3, kFirstUsed = 4;

/// What a row in two parts is: rounded values, and what that left of them.
Row both_parts(const FloatRow& row) {
  const std::size_t half = row.size() / 2;
  Row sum(half);
  for (std::size_t k = 0; k < half; ++k) sum[k] = static_cast<double>(row[k]) + static_cast<double>(row[half + k]);
  return sum;
}

double part(const topology::Neighbour& neighbour) { return static_cast<double>(static_cast<float>(neighbour.weight)); }

bool within(double bound, double error) { return std::abs(error) <= bound; }  // no NaN is

}  // namespace

std::optional<Channel> Judge::shared() const {
  return scenario_.algorithm == "async_push_sum" ? std::optional<Channel>(kGiven) : std::nullopt;
}

/// One round's account.
struct Judge::Account {
  Row stepped;             ///< (x, w) after the peer's steps
  bool gave = false;       ///< that went to its sum
  double kept = 1;         ///< the part of it that stayed where it gave,
  std::vector<double> perhaps_given;      ///< or less: those whom it may have thought to be gone, or not to count yet
  Row taken, scale;        ///< what came of the neighbours' sums; magnitudes of all that was added
};

Time Judge::end_of(int a, const RoundRecord& record) const {
  const auto next = std::ranges::upper_bound(life(a).rounds, record.round, {}, &RoundRecord::round);
  if (next != life(a).rounds.end()) return next->began;
  return life(a).finished ? life(a).finished_at : trace_.end;
}

/// Whether j was given its part of what a gave: nobody gives to who does not count yet, or has said that its rounds are done.
Judge::Share Judge::part_of(int a, int j, const RoundRecord& record) const {
  const Term* term = term_at(a, j, record.round);
  if (term == nullptr || !term->holds(record.round)) return Share::kept;
  if (record.round == term->lost || (!term->from_start && record.round <= term->entered)) return Share::either;
  const Life& other = life(term->other);
  return other.finished && other.finished_at <= end_of(a, record) ? Share::either : Share::given;
}

/// What a used of a neighbour's sum is that sum as it was after the round that the log says.
void Judge::judge_use_of_sum(int a, const RoundRecord& record, std::size_t place, const Used& used) {
  const FloatRow &before = record.begin[kFirstUsed + place], &after = record.end[kFirstUsed + place];
  if (used.values == 0) return hold(after == before, "replay", "peer {} used in round {} a sum that had not come", peer_of(a), record.round);
  const RoundRecord* giver = this->record(used.life, used.round);
  if (giver != nullptr && giver->end.empty()) return;  // its process ended before the round was on record
  const FloatRow due = giver != nullptr ? giver->end[kGiven] : FloatRow(after.size());  // it joined later, and gave nothing yet
  hold(after == due, "replay", "peer {} used in round {} a sum that is not peer {}'s of round {}", peer_of(a), record.round,
       peer_of(used.life), used.round);
}

Judge::Account Judge::account_of(int a, const RoundRecord& record, std::map<int, const Term*>& last) {
  Account account;
  const auto steps = static_cast<std::size_t>(scenario_.local_steps);
  const FloatRow& after_steps = record.trained[2 * steps - 1].after;
  account.stepped.assign(after_steps.begin(), after_steps.end());
  account.stepped.push_back(record.begin[kSum].back());
  account.gave = record.begin[kGiven] != record.end[kGiven];
  const int i = peer_of(a);
  const topology::MixingMatrix& matrix = w(record.round);
  for (int j = 0; j < n_ && account.gave; ++j)
    for (const topology::Neighbour& ours : matrix.hears(j)) {
      if (ours.peer != i) continue;
      const Share share = part_of(a, j, record);
      if (share == Share::given) account.kept -= part(ours);
      if (share == Share::either) account.perhaps_given.push_back(part(ours));
    }
  account.taken.resize(account.stepped.size());
  for (const double value : account.stepped) account.scale.push_back(std::abs(value));
  std::size_t place = 0;
  for (const topology::Neighbour& j : matrix.hears(i)) {
    const Used& used = used_.at({a, record.round, kGiven, j.peer});
    judge_use_of_sum(a, record, place, used);
    const Row before = both_parts(record.begin[kFirstUsed + place]), after = both_parts(record.end[kFirstUsed + place]);
    ++place;
    if (used.values == 0) continue;
    const Term* term = term_at(a, j.peer, record.round);
    const bool first = std::exchange(last[j.peer], term) != term && !term->from_start;  // it only says where to begin
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
  std::map<int, const Term*> last;
  for (const RoundRecord& record : life(a).rounds) {
    if (record.end.empty()) return;
    if (record.trained.size() != 2 * static_cast<std::size_t>(scenario_.local_steps))
      return hold(false, "replay", "peer {} took {} steps in round {}", peer_of(a), record.trained.size() / 2, record.round);
    const Account account = account_of(a, record, last);
    const double terms = 4 * (static_cast<double>(w(record.round).hears(peer_of(a)).size()) + 4);
    const Row given_before = both_parts(record.begin[kGiven]), given = both_parts(record.end[kGiven]);
    const std::size_t shares = account.perhaps_given.size();
    double least = std::numeric_limits<double>::infinity();
    for (unsigned choice = 0; choice < 1U << shares; ++choice) {
      double kept = account.kept, worst = 0;
      for (std::size_t k = 0; k < shares; ++k) kept -= (choice >> k & 1U) == 1 ? account.perhaps_given[k] : 0;
      for (std::size_t k = 0; k < account.stepped.size(); ++k) {
        const double due = kept * account.stepped[k] + account.taken[k];
        worst = std::max(worst, std::abs(record.end[kSum][k] - due) / (terms * kRounding * account.scale[k] + 1e-37));
      }
      least = std::min(least, worst);
    }
    hold(least <= 1, "replay", "peer {} has after round {} other sums than its steps, and what it gave and took, make: {:.3g} of the bound",
         peer_of(a), record.round, least);
    verdict_.rounding = std::max(verdict_.rounding, least);
    const bool counts = end_of(a, record) < total.until;  // at that very time it may be known
    if (counts) total.last[a] = &record;
    for (std::size_t k = 0; k < given.size() && counts; ++k) {
      total.change[k] += record.end[kSum][k] - account.stepped[k];
      total.bound[k] += terms * kRounding * account.scale[k];
    }
    for (std::size_t k = 0; k < given.size() && account.gave; ++k)
      hold(within(8 * kRounding * account.scale[k] + 1e-37, given[k] - given_before[k] - account.stepped[k]), "replay",
           "peer {} gave {:.9g} at value {} in round {}, and its sum grew by {:.9g}", peer_of(a), account.stepped[k], k, record.round,
           given[k] - given_before[k]);
    for (std::size_t k = 0; k + 1 < given.size(); ++k) {
      const double weight = record.end[kSum].back(), x = record.end[0][k];
      hold(within(4 * kRounding * std::abs(record.end[kSum][k]) + 1e-37, x * weight - record.end[kSum][k]), "replay",
           "peer {} has x = {:.9g} after round {}, which is not its sum over its weight", peer_of(a), x, record.round);
    }
  }
}

void Judge::judge_running_sums() {
  if (!shared()) return;
  // To one that is done nobody gives, and what a sum grows by is then not under way to it.
  Total total{Row(width(kSum)), Row(width(kSum)), trace_.end, {}};
  for (const Life& life : trace_.lives)
    if (life.finished) total.until = std::min(total.until, life.finished_at);
  for (int a = 0; a < lives(); ++a) judge_sums_of(a, total);
  if (undisturbed()) judge_total(total);
}

/// Nobody was lost, and all are done.
bool Judge::undisturbed() const {
  return trace_.links.empty() && std::ranges::all_of(trace_.lives, [](const Life& life) { return life.alive && life.finished; });
}

/// What has left the peers' sums is under way: what they gave and the others have not used. Peers need not be looked at at one time.
void Judge::judge_total(Total& total) {
  const auto row_of = [&](int a, std::size_t row) {
    const RoundRecord* last = total.last[a];
    return both_parts(last != nullptr ? last->end[row] : life(a).rounds.front().begin[row]);
  };
  for (int a = 0; a < n_; ++a) {
    std::size_t place = kFirstUsed;
    for (const topology::Neighbour& j : w(0).hears(a)) {
      const Row given = row_of(j.peer, kGiven), used = row_of(a, place++);
      for (std::size_t k = 0; k < given.size(); ++k) total.change[k] += part(j) * (given[k] - used[k]);
    }
  }
  for (std::size_t k = 0; k < total.change.size(); ++k)
    hold(within(total.bound[k], total.change[k]), "totals", "{:.3g} came to the sum over the peers at value {}, beside their steps",
         total.change[k], k);
}

/// Both ends of an average have the same bits, so the sum over the peers changes by their steps alone.
void Judge::judge_pairs() {
  if (scenario_.algorithm != "ad_psgd" || !undisturbed()) return;
  Row change(static_cast<std::size_t>(scenario_.length));
  double most = 0;
  for (const Life& life : trace_.lives) {
    for (const RoundRecord& record : life.rounds) {
      if (record.trained.size() != 1)
        return hold(false, "totals", "peer {} took {} times its steps in round {}", life.peer, record.trained.size(), record.round);
      const Trained& steps = record.trained.front();
      for (std::size_t k = 0; k < change.size(); ++k) {
        change[k] -= static_cast<double>(steps.after[k]) - static_cast<double>(steps.before[k]);
        most = std::max({most, std::abs(static_cast<double>(steps.before[k])), std::abs(static_cast<double>(steps.after[k]))});
      }
    }
    for (std::size_t k = 0; k < change.size(); ++k)
      change[k] += static_cast<double>(life.rounds.back().end[0][k]) - static_cast<double>(life.rounds.front().begin[0][k]);
  }
  // A round of a peer is one question at most: an average at two peers, and a sum of three.
  const double bound = 8 * kRounding * most * static_cast<double>(last_) * n_;
  for (std::size_t k = 0; k < change.size(); ++k)
    hold(within(bound, change[k]), "totals", "{:.3g} came to the sum over the peers at value {}, beside their steps", change[k], k);
}

}  // namespace gossamer::gossip::sim
