#include "topology/recent_rounds.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::topology {

std::shared_ptr<const MixingMatrix> RecentRounds::at(Round t) const {
  if (period() > 0) return schedule_.at(t);  // a look-up already
  if (std::exchange(revision_, participants().revision()) != participants().revision())
    recent_.clear();
  const auto found = std::ranges::find(recent_, t, [](const auto& kept) { return kept.first; });
  if (found != recent_.end()) {
    std::rotate(found, found + 1, recent_.end());
  } else {
    if (recent_.size() == kKept) recent_.erase(recent_.begin());
    recent_.emplace_back(t, schedule_.at(t));
  }
  return recent_.back().second;
}

}  // namespace gossamer::topology
