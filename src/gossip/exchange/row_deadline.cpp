#include "gossip/exchange/row_deadline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::gossip {

RowDeadline::Finding RowDeadline::advance(Time counted, Round round, std::span<const int> awaited) {
  if (round != std::exchange(round_, round)) {
    waits_.clear();
    announced_ = 0;
  }
  Finding finding;
  int chain = 0;
  for (const int peer : awaited) {
    Wait& wait = waits_[peer];
    wait.waited += counted;
    if (wait.waited > limit_ * (1 + wait.chain)) {
      finding.overdue.push_back(peer);
      wait = {};
    } else if (wait.waited > limit_ / 2) {
      chain = std::max(chain, std::min<int>(wait.chain + 1, kLongestChain));
    }
  }
  // The chain is announced again, because a receiver forgets it when it begins another round.
  since_announcement_ += counted;
  if (chain > announced_ || (chain > 0 && since_announcement_ > limit_ / 8)) {
    finding.chain = announced_ = static_cast<std::uint8_t>(chain);
    since_announcement_ = Time(0);
  }
  return finding;
}

Status RowDeadline::on_waiting(int peer, Round round, std::uint8_t chain) {
  if (chain == 0 || chain > kLongestChain)
    return Error{ErrorKind::lost_peer,
                 fmt::format("it says that a chain of {} peers waits, and a chain has 1 to {}",
                             chain, kLongestChain)};
  if (round <= round_) waits_[peer].chain = chain;
  return {};
}

void RowDeadline::on_donor_begins(int donor, Round t) {
  Wait& wait = waits_[donor];
  if (t > wait.begun) wait = {.begun = t};
}

}  // namespace gossamer::gossip
