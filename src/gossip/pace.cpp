#include "gossip/pace.hpp"

#include <cmath>

namespace gossamer::gossip {
namespace {

constexpr double kSmoothing = 0.25;  // share of the newest sample in a running mean
// Others are taken to be so much faster than they were: they no longer wait for this peer. To come early is to wait a little.
constexpr double kHurry = 1.2;

}  // namespace

void smooth(std::optional<double>& mean, double sample) { mean = mean ? *mean + kSmoothing * (sample - *mean) : sample; }

Round Pace::next(Round t, const Others& others, Time now) {
  const double busy = seconds(busy_.value_or(Time(0)));
  busy_.reset();
  round_began_ = now;
  if (!others.round) return t + 1;
  const Round rounds = *others.round - std::min(before_ ? *before_->round : first_, *others.round);
  const double sample = seconds(others.seen - (before_ ? before_->seen : Time(0))) / static_cast<double>(std::max<Round>(rounds, 1));
  if (rounds > 0) smooth(seconds_a_round_, sample);
  before_ = others;
  if (!seconds_a_round_ || *seconds_a_round_ <= 0) return t + 1;
  const double until_then = (seconds(now - others.seen) + busy) / *seconds_a_round_;  // their rounds until this peer mixes again
  const bool behind = *others.round > t + 1 || (*others.round == t + 1 && !others.took_part);
  const bool falls_behind = until_then >= 2 && *others.round >= t;
  if (!behind && !falls_behind) return t + 1;
  return std::max(t + 1, *others.round + static_cast<Round>(std::floor(kHurry * until_then)) + 1);
}

}  // namespace gossamer::gossip
