#include "gossip/mixing/pace.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gossamer::gossip {
namespace {

constexpr double kSmoothing = 0.25;  // share of the newest sample in a running mean
// The others are assumed to be faster by this factor than they were: they no longer wait for this
// peer. A peer that is early waits a little.
constexpr double kHurry = 1.2;

}  // namespace

void smooth(std::optional<double>& mean, double sample) {
  mean = mean ? *mean + kSmoothing * (sample - *mean) : sample;
}

Round Pace::next(Round t, const Others& others, Time now) {
  const double busy = seconds(busy_.value_or(Time(0)));
  busy_.reset();
  round_began_ = now;
  std::vector<std::pair<std::pair<Round, Time>, int>> order;
  for (const auto& [peer, seen] : others.seen) {
    const auto [round, at] = seen;
    Neighbour& neighbour =
        neighbours_.try_emplace(peer, Neighbour{first_, Time(0), {}}).first->second;
    if (round > neighbour.round)
      smooth(neighbour.seconds_per_round,
             seconds(at - neighbour.seen) / static_cast<double>(round - neighbour.round));
    neighbour.round = round;
    neighbour.seen = at;
    order.push_back({seen, peer});
  }
  if (order.empty()) return t + 1;
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::ranges::nth_element(order, middle);
  const Neighbour& other = neighbours_.at(middle->second);
  if (!other.seconds_per_round || *other.seconds_per_round <= 0) return t + 1;
  const double until_then = (seconds(now - other.seen) + busy) /
                            *other.seconds_per_round;  // its rounds until this peer mixes again
  const bool behind = other.round > t + 1 || (other.round == t + 1 && !others.took_part);
  const bool falls_behind = until_then >= 2 && other.round >= t;
  if (!behind && !falls_behind) return t + 1;
  return std::max(t + 1, other.round + static_cast<Round>(std::floor(kHurry * until_then)) + 1);
}

}  // namespace gossamer::gossip
