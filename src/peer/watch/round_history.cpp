#include "peer/watch/round_history.hpp"

#include <algorithm>
#include <iterator>

namespace gossamer::peer {

RoundHistory::Round* RoundHistory::at(std::uint64_t round) {
  if (const auto found = rounds_.find(round); found != rounds_.end()) return &found->second;
  const bool newest = rounds_.empty() || round > rounds_.rbegin()->first;
  if (!newest && !fits(round)) return nullptr;
  if (newest && !rounds_.empty() && !fits(rounds_.rbegin()->first))
    rounds_.erase(std::prev(rounds_.end()));
  const std::vector<float> none(peers_, std::numeric_limits<float>::quiet_NaN());
  Round& kept = rounds_[round];
  kept.figures.round = round;
  kept.peers = {none, none, none, none};
  thin_out();
  const auto added = rounds_.find(round);
  return added == rounds_.end() ? nullptr : &added->second;
}

void RoundHistory::thin_out() {
  const std::size_t most = std::clamp(kMostPeerFigures / peers_, kFewestRounds, kMostRounds);
  while (rounds_.size() > most) {
    stride_ *= 2;
    const std::uint64_t newest = rounds_.rbegin()->first;
    std::erase_if(rounds_,
                  [&](const auto& kept) { return kept.first != newest && !fits(kept.first); });
  }
}

}  // namespace gossamer::peer
