// The oracle's judgement of links that are there once all faults are over: that rounds use them
// again.
#include <algorithm>

#include "simulator/oracle/judge.hpp"

namespace gossamer::gossip::sim {

/// Every link that is there counts.
void Judge::judge_use(const std::vector<int>& part, const Calm& calm) {
  if (calm.since == Time(0) || (parts_.policy != Policy::sync && parts_.policy != Policy::stale))
    return;
  for (const int a : part)
    for (const RoundRecord& record : life(a).rounds) {
      if (record.round < calm.from || record.end.empty()) continue;
      for (const topology::Neighbour& j : w(record.round).in_neighbours(peer_of(a)))
        for (std::size_t c = 0; c < parts_.rows.size(); ++c) {
          const auto used = used_.find({a, record.round, static_cast<Channel>(c), j.peer});
          if (used == used_.end() || !std::ranges::binary_search(part, used->second.life) ||
              !joined(a, used->second.life))
            continue;
          if (parts_.policy == Policy::stale &&
              record.round < static_cast<Round>(scenario_.staleness))
            continue;
          hold(used->second.values == width(static_cast<Channel>(c)), "healing",
               "the link between peers {} and {} is there, and does not count in round {}",
               peer_of(a), j.peer, record.round);
        }
    }
}

/// Under `async` a row that has come is used in every round until a newer one comes. The first that
/// b sends to a once all is settled goes out before b's next round begins, and has come a few
/// messages there and back later.
void Judge::judge_latest(const std::vector<int>& part, const Calm& calm) {
  if (parts_.policy != Policy::async || !parts_.algorithm->needs().tolerates_peer_loss) return;
  const Time settled_at = std::max(calm.since, faults_end(scenario_)),
             patience = patience_of(scenario_, parts_);
  const auto in_neighbours = [&](int a, int b, Round t) {
    return std::ranges::any_of(w(t).in_neighbours(peer_of(a)),
                               [&](const topology::Neighbour& j) { return j.peer == peer_of(b); });
  };
  for (const int a : part)
    for (const int b : part) {
      if (a == b || !joined(a, b)) continue;
      const std::vector<RoundRecord>& sent = life(b).rounds;
      const auto first = std::ranges::find_if(sent, [&](const RoundRecord& record) {
        return record.began >= settled_at && record.round >= calm.from &&
               in_neighbours(a, b, record.round);
      });
      if (first == sent.end() || std::next(first) == sent.end()) continue;
      const Time due = std::next(first)->began + patience;
      for (const RoundRecord& record : life(a).rounds) {
        if (record.began < due || record.round < calm.from || record.end.empty() ||
            !in_neighbours(a, b, record.round))
          continue;
        if (life(b).finished && record.began >= life(b).finished_at)
          break;  // it answers nothing about a link that is back
        for (Channel c = 0; c < static_cast<Channel>(parts_.rows.size()); ++c) {
          if (!travels(c)) continue;
          const Used& used = used_.at({a, record.round, c, peer_of(b)});
          hold(used.values == width(c) && used.round >= first->round, "reuse",
               "peer {} uses nothing in round {} that peer {} sent since its round {}", peer_of(a),
               record.round, peer_of(b), first->round);
        }
      }
    }
}

/// Under `deadline` what comes late is left out, and who was late is not waited for the next time;
/// so it is not said which links count when. But after all is settled some link of a part does in
/// any so many rounds in a row: peers that are out of step wait for each other again, after 4, 8,
/// 16 rounds, …, and who is far behind leaves rounds out. Where a round takes less time than a
/// row's way, links are busy with one row for several rounds, which then do not count.
void Judge::judge_agreements(const std::vector<int>& part, const Calm& calm) {
  if (parts_.policy != Policy::deadline || !parts_.algorithm->needs().trainer) return;
  double frames = 0;
  for (Channel c = 0; c < static_cast<Channel>(parts_.rows.size()); ++c)
    if (travels(c))
      frames += static_cast<double>(width(c)) *
                (4 + static_cast<double>(kFrameOverheadBytes) / scenario_.chunk_values);
  const double passage_ms =
      scenario_.bandwidth_mbit_s > 0 ? 2 * frames * 8e-3 / scenario_.bandwidth_mbit_s : 0;
  const double way_ms = scenario_.latency_ms + scenario_.jitter_ms + passage_ms;
  if (way_ms > scenario_.step_ms * parts_.algorithm->steps_per_round()) return;
  const Time settled_at =
      std::max(calm.since, faults_end(scenario_)) + patience_of(scenario_, parts_);
  std::map<Round, bool> counts;  ///< of rounds in which W joins peers who both are there: whether
                                 ///< any such link counts
  for (const int a : part)
    for (const RoundRecord& record : life(a).rounds) {
      if (record.began < settled_at || record.round < calm.from || record.end.empty()) continue;
      for (const topology::Neighbour& j : w(record.round).in_neighbours(peer_of(a)))
        for (Channel c = 0; c < static_cast<Channel>(parts_.rows.size()); ++c) {
          const auto used = used_.find({a, record.round, c, j.peer});
          const int b = used == used_.end() ? -1 : used->second.life;
          if (!std::ranges::binary_search(part, b) || !joined(a, b)) continue;
          const auto back = used_.find({b, record.round, c, peer_of(a)});
          if (back == used_.end() || back->second.life != a) continue;
          bool& any = counts[record.round];
          any = any || (used->second.values == width(c) && back->second.values == width(c));
        }
    }
  const std::size_t enough = 32 + 2 * static_cast<std::size_t>(n_);
  std::size_t unused = 0;
  for (const auto& [t, any] : counts) {
    unused = any ? 0 : unused + 1;
    if (counts.size() >= enough)
      hold(unused < enough, "reuse",
           "in {} rounds up to round {}, no link between the peers {} counts", unused, t,
           names(part));
  }
}

}  // namespace gossamer::gossip::sim
