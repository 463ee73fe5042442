#include "gossip/exchange/catch_up.hpp"

#include <algorithm>

namespace gossamer::gossip {

CatchUpPlan::Outcome CatchUpPlan::add(const CatchUp& news, Round round) {
  for (const CatchUp& known : catch_ups_) {
    const bool within = known.from <= news.from && news.from < known.resumes_at;
    if (within && (known.from < news.from || news.resumes_at <= known.resumes_at))
      return Outcome::known;
  }
  if (news.from <= round) return Outcome::late;
  std::erase_if(catch_ups_, [&](const CatchUp& known) {
    return news.from <= known.from && known.from < news.resumes_at;
  });
  // Of those that are over, the last one says which announcements of slower neighbours are known.
  while (catch_ups_.size() > 1 && catch_ups_[1].from <= round) catch_ups_.erase(catch_ups_.begin());
  catch_ups_.insert(std::ranges::upper_bound(catch_ups_, news.from, {}, &CatchUp::from), news);
  return Outcome::adopted;
}

Round CatchUpPlan::next(Round t) const {
  for (const CatchUp& known : catch_ups_)
    if (known.from <= t && t < known.resumes_at) t = known.resumes_at;
  return t;
}

std::span<const CatchUp> CatchUpPlan::to_come(Round round) const {
  const auto first = std::ranges::upper_bound(catch_ups_, round, {}, &CatchUp::from);
  return {first, catch_ups_.end()};
}

Round CatchUpPlan::resumes_by(Round t, Round round) const {
  Round resumes_at = 0;
  for (const CatchUp& known : to_come(round))
    if (known.from <= t) resumes_at = known.resumes_at;
  return resumes_at;
}

std::optional<CatchUp> CatchUpPlan::resuming_in(Round t) const {
  const auto found = std::ranges::find(catch_ups_, t, &CatchUp::resumes_at);
  return found == catch_ups_.end() ? std::nullopt : std::optional(*found);
}

void CatchUpPlan::forget_to_come(Round round) {
  std::erase_if(catch_ups_, [round](const CatchUp& known) { return known.from > round; });
}

}  // namespace gossamer::gossip
