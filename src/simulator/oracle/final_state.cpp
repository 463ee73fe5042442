// The oracle's judgement of what is left in the end: restarts, news, progress, queues, disks.
#include <algorithm>
#include <cmath>
#include <set>

#include "simulator/oracle/judge.hpp"
#include "simulator/world/connection.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::gossip::sim {

bool Judge::joined(int a, int b) const { return link_between(a, b) != nullptr; }

/// Lives that are left, in parts that links still join.
std::vector<std::vector<int>> Judge::components() const {
  std::vector<int> left;
  for (int a = 0; a < lives(); ++a)
    if (life(a).alive && !life(a).rounds.empty()) left.push_back(a);
  std::vector<std::vector<int>> parts;
  std::set<int> seen;
  for (const int a : left) {
    if (!seen.insert(a).second) continue;
    std::vector<int> part{a};
    for (std::size_t k = 0; k < part.size(); ++k)
      for (const int b : left)
        if (joined(part[k], b) && seen.insert(b).second) part.push_back(b);
    std::ranges::sort(part);
    parts.push_back(part);
  }
  return parts;
}

/// No round is agreed on by then that is later: it lies beyond what is done while words are on
/// their way.
Round Judge::agreed_at_most(int a, Time when) const {
  const Round now = round_at(a, when);
  return now + (now - round_at(a, when - patience_of(scenario_, parts_))) + 4;
}

/// Links that counted, and were there by then, join all of a part.
bool Judge::holds_together(const std::vector<int>& part, Time by) const {
  std::set<int> seen{part.front()};
  std::vector<int> reached{part.front()};
  for (std::size_t k = 0; k < reached.size(); ++k)
    for (const int b : part) {
      const Term* link = link_between(reached[k], b);
      if (link == nullptr || !(link->from_start || link->used) || link->back_at > by ||
          seen.contains(b))
        continue;
      seen.insert(b);
      reached.push_back(b);
    }
  return reached.size() == part.size();
}

Judge::Calm Judge::calm_of(const std::vector<int>& part) const {
  Calm calm;
  bool returns = false;
  Time last_at{0};
  const auto event = [&](Round round, Time at, bool counted) {
    calm.from = std::max(calm.from, round);
    calm.since = std::max(calm.since, at);
    if (!counted || (calm.last != kNever && round <= calm.last)) return;
    calm.last = round;
    last_at = at;
  };
  for (const auto& [ends, terms] : terms_) {
    if (!std::ranges::binary_search(part, ends.first)) continue;
    for (const Term& term : terms) {
      const bool counted =
          term.from_start ||
          term.used;  // one that only the other end used may not have been known to count here
      if (term.lost != kNever) event(term.lost, term.lost_at, counted);
      if (term.from_start) continue;
      returns = true;
      const Term* other = other_end(ends.first, term);
      event(term.entered == kNever ? term.back : term.entered,
            std::max(term.back_at, other == nullptr ? Time(0) : other->back_at), counted);
    }
  }
  calm.told = calm.last != kNever && holds_together(part, last_at);
  if (!returns) return calm;
  calm.since = std::max(calm.since, faults_end(scenario_)) + patience_of(scenario_, parts_);
  for (const int a : part) calm.from = std::max(calm.from, agreed_at_most(a, calm.since));
  return calm;
}

void Judge::judge_restarts() {
  if (!is_static() || parts_.policy != Policy::sync || !symmetric_ ||
      !parts_.algorithm->needs().tolerates_peer_loss)
    return;
  const auto n = static_cast<Round>(n_);
  // On a directed graph a peer may be so far ahead that the news comes too late for it: then it
  // tells of the loss anew. So may one be whose part of the network was on its own for a while.
  std::set<Round> due_anywhere;
  for (const LinkRecord& link : trace_.links) due_anywhere.insert(link.round + n);
  for (int a = 0; a < lives() && !any_back_; ++a)
    for (const RoundRecord& record : life(a).rounds)
      if (record.restarted)
        hold(due_anywhere.contains(record.round), "restarts",
             "peer {} began again in round {}, {} rounds after no loss", peer_of(a), record.round,
             n);
  for (const std::vector<int>& part : components()) judge_restarts_of(part);
}

/// News of what happened while the part itself was still losing links may have gone astray; then it
/// was news again.
void Judge::judge_restarts_of(const std::vector<int>& part) {
  const Calm calm = calm_of(part);
  if (calm.since == Time(0)) return;
  // What was told before a part was on its own counts there too; and so does a round that was
  // agreed on for a link which was lost again before.
  Round changed = calm.from;
  for (const auto& [ends, terms] : terms_)
    for (const Term& term : terms) {
      changed =
          std::max(changed, term.entered != kNever
                                ? term.entered
                                : agreed_at_most(ends.first, std::min(term.lost_at, trace_.end)));
      if (term.lost != kNever) changed = std::max(changed, term.lost);
    }
  const Round due = calm.last + static_cast<Round>(n_), quiet = changed + static_cast<Round>(n_);
  for (const int a : part)
    for (const RoundRecord& record : life(a).rounds) {
      if (calm.told && record.round == due)
        hold(
            record.restarted, "restarts",
            "a link was lost or came back in round {}, and peer {} did not begin again in round {}",
            calm.last, peer_of(a), due);
      if (record.round > quiet)
        hold(!record.restarted, "restarts",
             "peer {} began again in round {}, though nothing has changed since round {}",
             peer_of(a), record.round, changed);
    }
}

/// Who joins and has links to some who run is there before these begin another round. It asks but
/// one, until that one is lost: those whose rounds are all done are of no help.
void Judge::judge_arrivals() {
  for (int a = 0; a < lives(); ++a) {
    if (!life(a).alive || !life(a).joins || life(a).finished) continue;
    Time due = faults_end(scenario_);
    std::vector<int> linked;
    for (const auto& [ends, terms] : terms_)
      for (const Term& term : terms) {
        if (ends.first != a && term.other != a) continue;
        due = std::max({due, term.back_at, term.lost == kNever ? Time(0) : term.lost_at});
        if (ends.first != a || !joined(a, term.other) || life(term.other).rounds.empty()) continue;
        linked.push_back(term.other);
        if (life(term.other).joins)
          due = std::max(due,
                         life(term.other).rounds.front().began);  // it had nothing to give before
      }
    due += patience_of(scenario_, parts_);
    // One that it may have asked gives rows at the beginning of a round, and has none left.
    const auto has_none = [&](int b) {
      const bool in_its_last =
          life(b).rounds.back().round + 1 == last_ && life(b).rounds.back().began <= due;
      return in_its_last || (life(b).finished && life(b).finished_at <= due);
    };
    if (std::ranges::any_of(linked, has_none)) continue;
    for (const int b : linked)
      hold(!life(a).rounds.empty() || life(b).rounds.back().began <= due, "progress",
           "peer {} still waits to join, though peer {} has begun round {}", peer_of(a), peer_of(b),
           life(b).rounds.back().round);
  }
}

/// Who is out of reach is known everywhere once the news of it had time and rounds to go round (it
/// keeps its place behind rows that a peer has no room for yet), until the first of all is done.
void Judge::judge_reach(const std::vector<int>& part, const Calm& calm) {
  if (!parts_.algorithm->needs().tolerates_peer_loss || ended_unseen(part)) return;
  std::vector<int> there;
  for (const int a : part) there.push_back(peer_of(a));
  std::ranges::sort(there);
  const Time known =
      std::max(calm.since, faults_end(scenario_)) + n_ * patience_of(scenario_, parts_);
  Time until = trace_.end;
  for (const Life& life : trace_.lives)
    if (life.finished) until = std::min(until, life.finished_at);
  for (const int a : part)
    for (const RoundRecord& record : life(a).rounds)
      if (record.began >= known && record.began < until &&
          record.round >= calm.from + static_cast<Round>(n_))
        hold(record.reachable == there, "reach",
             "in round {} peer {} holds peers {} for within reach, and links join {}", record.round,
             peer_of(a), fmt::join(record.reachable, ", "), fmt::join(there, ", "));
}

/// Somebody who counted ended in its last rounds, and those who had done theirs miss nobody.
bool Judge::ended_unseen(const std::vector<int>& part) const {
  return std::ranges::any_of(terms_, [&](const auto& entry) {
    const auto& [ends, terms] = entry;
    if (terms.empty() || !std::ranges::binary_search(part, ends.first)) return false;
    const Term& last = terms.back();
    return last.lost == kNever && !life(last.other).rounds.empty() &&
           !std::ranges::binary_search(part, last.other);
  });
}

/// Whether by W's arcs over links that are there each of a part reaches each: on others sums flow
/// off, and do not come back.
bool Judge::leads_back(const std::vector<int>& part) const {
  const auto gives = [&](int a, int b) {
    for (Round t = 0; t < static_cast<Round>(parts_.schedule->period()); ++t)
      for (const topology::Neighbour& j : w(t).in_neighbours(peer_of(b)))
        if (j.peer == peer_of(a) && joined(a, b)) return true;
    return false;
  };
  const auto reached = [&](auto&& arc) {
    std::vector<int> found{part.front()};
    for (std::size_t k = 0; k < found.size(); ++k)
      for (const int b : part)
        if (std::ranges::find(found, b) == found.end() && arc(found[k], b)) found.push_back(b);
    return found.size() == part.size();
  };
  return reached(gives) && reached([&](int a, int b) { return gives(b, a); });
}

/// What is left together in the end: its sums, how near its peers are, and to what.
void Judge::judge_ends() {
  judge_arrivals();
  for (const std::vector<int>& part : components()) {
    const Calm calm = calm_of(part);
    judge_use(part, calm);
    judge_latest(part, calm);
    judge_agreements(part, calm);
    judge_reach(part, calm);
    if (!synchronous() || (!symmetric_ && (parts_.policy != Policy::sync || !leads_back(part))))
      continue;
    const Round begin = calm.since == Time(0) ? 0 : calm.from + static_cast<Round>(n_) + 1;
    bool whole = begin < last_ && !ended_unseen(part);
    // A link within the part that one end alone has given up keeps its deviations in the log; such
    // parts stay unjudged.
    for (const int a : part)
      whole = whole && life(a).finished && settled(a, last_ - 1) && settled(a, begin);
    if (!whole) continue;
    judge_sums(part);
    if (!symmetric_) continue;
    // With a codec, mixing stalls at what it rounds off.
    if (parts_.policy == Policy::sync && is_static() && scenario_.codec == "none")
      judge_convergence(part, begin);
  }
}

std::string Judge::names(const std::vector<int>& part) const {
  std::string text;
  for (const int a : part) text += fmt::format("{}{}", text.empty() ? "" : ", ", peer_of(a));
  return text;
}

void Judge::judge_progress() {
  hold(!trace_.out_of_time, "progress",
       "the run was not over after {:.3f} s of virtual time and {} events", seconds(trace_.end),
       trace_.events);
  const Time limit = time_limit(scenario_, parts_);
  for (int a = 0; a < lives(); ++a) {
    if (!life(a).alive || (life(a).joins && life(a).rounds.empty())) continue;
    hold(life(a).finished, "progress",
         "peer {} stands in round {}, and nothing is on its way to it", peer_of(a),
         life(a).rounds.empty() ? 0 : life(a).rounds.back().round);
    hold(!life(a).finished || life(a).finished_at <= limit, "progress",
         "peer {} was done after {:.3f} s, where {:.3f} s are due", peer_of(a),
         seconds(life(a).finished_at), seconds(limit));
  }
}

/// Of each connection a window of chunks; of each neighbour in the process, who is at most so many
/// rounds ahead, whole rows.
void Judge::judge_queues() {
  const bool asks =
      scenario_.algorithm ==
      "ad_psgd";  // one question, one answer and a word at parting, a row each at most
  const auto chunk =
      kFrameOverheadBytes + static_cast<std::uint64_t>(scenario_.chunk_values) * sizeof(float);
  for (int a = 0; a < lives(); ++a) {
    const int i = peer_of(a);
    std::uint64_t bound = 0;
    for (const int j : parts_.algorithm->partners(i, *parts_.schedule)) {
      if (scenario_.homes[static_cast<std::size_t>(i)] !=
          scenario_.homes[static_cast<std::size_t>(j)]) {
        bound += static_cast<std::uint64_t>(scenario_.window) * chunk;
        continue;
      }
      const auto period = static_cast<std::uint64_t>(std::max(parts_.schedule->period(), 1));
      const std::uint64_t ahead = symmetric_ ? 2 : static_cast<std::uint64_t>(n_) * period + 1;
      for (std::size_t c = 0; c < parts_.rows.size(); ++c)
        if (travels(static_cast<Channel>(c)) || asks ||
            (life(a).joins && parts_.rows[c].is_transferred()))
          bound += ahead * (width(static_cast<Channel>(c)) * sizeof(float) +
                            kFrameOverheadBytes * width(static_cast<Channel>(c)));
    }
    hold(life(a).most_waiting_bytes <= bound, "queues",
         "{} bytes waited at peer {}, where at most {} may", life(a).most_waiting_bytes, i, bound);
  }
}

/// At a sender, of each connection: one row of each channel at most. Under `sync` a mix begins only
/// when nobody reads the half that it writes any more, which is the row of the round before; under
/// the other policies a link that still reads a copy is not lent another one. A receiver that joins
/// is given its giver's rows once beside these. AD-PSGD's peer has one question or answer on its
/// way, and a word of one value at parting. What is told of links has no values, and is no part of
/// this.
void Judge::judge_lent() {
  for (const auto& [ends, most] : trace_.most_lent) {
    const int to = ends.second;
    const bool joins = std::ranges::any_of(
        trace_.lives, [to](const Life& life) { return life.peer == to && life.joins; });
    std::uint64_t bound =
        scenario_.algorithm == "ad_psgd" ? static_cast<std::uint64_t>(scenario_.length) + 1 : 0;
    for (std::size_t c = 0; c < parts_.rows.size(); ++c) {
      const std::size_t values = width(static_cast<Channel>(c));
      if (travels(static_cast<Channel>(c)))
        bound += parts_.codec ? parts_.codec->words(values) : values;
      if (joins && parts_.rows[c].is_transferred()) bound += values;
    }
    hold(most <= bound, "queues", "{} values waited at peer {} for peer {}, where at most {} may",
         most, ends.first, to, bound);
  }
}

/// Whoever looks at its disk finds a round that its peers have done, and none before the last that
/// was said to be there.
void Judge::judge_disks() {
  for (const DiskRecord& disk : trace_.disks) {
    const Round found = disk.found.empty() ? 0 : disk.found.front().round;
    hold(found >= disk.said, "disk",
         "process {} finds round {} on its disk, where round {} was said to be", disk.process,
         found, disk.said);
    for (const SavedState& state : disk.found) {
      const auto had = [&](const Life& life) {
        if (life.peer != state.peer) return false;
        const RoundRecord* last = nullptr;  // it may have left rounds out since
        for (const RoundRecord& record : life.rounds)
          if (record.round < state.round && !record.end.empty()) last = &record;
        if (last == nullptr) return false;
        for (std::size_t k = 0; k < parts_.rows.size(); ++k)
          if (parts_.rows[k].survives && last->end[k] != state.rows[k]) return false;
        return true;
      };
      hold(state.round == found && std::ranges::any_of(trace_.lives, had), "disk",
           "process {} finds rows on its disk that peer {} did not have after {} rounds",
           disk.process, state.peer, found);
    }
  }
}

}  // namespace gossamer::gossip::sim
