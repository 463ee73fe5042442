#include "peer/watch/round_history.hpp"

#include <algorithm>
#include <iterator>

namespace gossamer::peer {

RoundHistory::Round* RoundHistory::at(std::uint64_t round) {
  if (const auto found = rounds_.find(round); found != rounds_.end()) return &found->second;
  const bool newest = rounds_.empty() || round > rounds_.rbegin()->first;
  if (!newest && !fits(round)) return nullptr;
  const auto before = rounds_.empty() ? rounds_.end() : std::prev(rounds_.end());
  const std::vector<float> none(peers_, std::numeric_limits<float>::quiet_NaN());
  ++changes_;
  Round& kept = rounds_[round];
  kept.figures.round = round;
  kept.peers = {none, none, none, none};
  for (auto ahead = sent_ahead_.begin(); ahead != sent_ahead_.end() && ahead->first <= round;
       ahead = sent_ahead_.erase(ahead))
    kept.sent += ahead->second;
  if (newest && before != rounds_.end() && !fits(before->first)) erase(before);
  thin_out();
  const auto added = rounds_.find(round);
  return added == rounds_.end() ? nullptr : &added->second;
}

/// Not of the newest round.
void RoundHistory::erase(std::map<std::uint64_t, Round>::iterator round) {
  take_sketches(round->second);
  std::next(round)->second.sent += round->second.sent;
  rounds_.erase(round);
  ++changes_;
}

void RoundHistory::thin_out() {
  const std::size_t most = std::clamp(kMostPeerFigures / peers_, kFewestRounds, kMostRounds);
  while (rounds_.size() > most) {
    stride_ *= 2;
    const std::uint64_t newest = rounds_.rbegin()->first;
    for (auto round = rounds_.begin(); round != rounds_.end();) {
      const auto here = round++;
      if (here->first != newest && !fits(here->first)) erase(here);
    }
  }
}

void RoundHistory::add_sent(std::uint64_t round, std::uint64_t bytes, std::uint64_t version) {
  auto kept = rounds_.lower_bound(round);
  if (kept == rounds_.end()) {
    sent_ahead_[round] += bytes;
    if (sent_ahead_.size() <= kMostRounds) return;
    const auto oldest = sent_ahead_.begin();
    std::next(oldest)->second += oldest->second;
    sent_ahead_.erase(oldest);
    return;
  }
  kept->second.sent += bytes;
  for (; bytes > 0 && kept != rounds_.end(); ++kept) kept->second.figures.changed = version;
}

void RoundHistory::add_sketch(Round& round, int peer, const std::vector<double>& sketch) {
  const auto& others = round.sketches;
  if (!others.empty() && others.begin()->second.size() != sketch.size()) return;
  if (!round.sketches.try_emplace(peer, sketch.begin(), sketch.end()).second) return;
  sketch_values_ += sketch.size();
  for (auto oldest = rounds_.begin(); sketch_values_ > kMostSketchValues; ++oldest)
    take_sketches(oldest->second);
}

ConsensusDistance RoundHistory::take_estimate(Round& round, const std::vector<int>& honest) {
  std::vector<bool> has_sketch;
  for (const int peer : honest) has_sketch.push_back(round.sketches.contains(peer));
  ConsensusDistance estimate = estimated_consensus_distance(take_sketches(round));
  std::vector<double> by_peer(honest.size(), kNotKnown);
  auto next = estimate.by_peer.begin();
  for (std::size_t k = 0; k < honest.size() && next != estimate.by_peer.end(); ++k)
    if (has_sketch[k]) by_peer[k] = *next++;
  estimate.by_peer = std::move(by_peer);
  return estimate;
}

/// In the order of their peers.
std::vector<std::vector<double>> RoundHistory::take_sketches(Round& round) {
  std::vector<std::vector<double>> taken;
  for (const auto& [unused, sketch] : round.sketches) {
    sketch_values_ -= sketch.size();
    taken.emplace_back(sketch.begin(), sketch.end());
  }
  round.sketches.clear();
  return taken;
}

}  // namespace gossamer::peer
