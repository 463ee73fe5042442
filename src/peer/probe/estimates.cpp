#include "peer/probe/estimates.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "gossip/link.hpp"

namespace gossamer::peer {
namespace {

constexpr double kShortestTransfer = 0.4, kLongestTransfer = 1.6;  // seconds
constexpr std::size_t kFirstValues = 32 * 1024 / sizeof(float);
constexpr std::size_t kLeastParts = 16;
constexpr double kQuartilesOfNormal = 1.349;  // the distance between them in standard deviations
constexpr double kWidestSpread = 2;           // that a step of [sim] can have

/// By linear interpolation between the sorted values.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

LatencyEstimate estimate_latency(std::vector<double> round_trips) {
  GOSSAMER_CHECK(!round_trips.empty(), "an estimate from no round trip");
  std::ranges::sort(round_trips);
  const double median = quantile(round_trips, 0.5);
  const double range = quantile(round_trips, 0.75) - quantile(round_trips, 0.25);
  const double jitter = std::min(median, range / (2 - std::sqrt(2.0)));
  return {(median - jitter) / 2 * 1e3, jitter * 1e3};
}

double TransferSize::bits() const {
  return 8.0 * parts *
         (static_cast<double>(sizeof(float)) * values +
          static_cast<double>(gossip::kFrameOverheadBytes));
}

TransferSize transfer_size(int step) {
  const std::size_t whole = kFirstValues << step;
  const std::size_t values = std::min(whole / kLeastParts, kMostPartValues);
  return {static_cast<int>(values), static_cast<int>(whole / values)};
}

double transfer_seconds(std::span<const gossip::Time> arrivals) {
  GOSSAMER_CHECK(arrivals.size() >= 4, "a transfer of too few parts");
  const std::size_t first = arrivals.size() / 4, last = arrivals.size() - 1;
  const double seconds = gossip::seconds(arrivals[last] - arrivals[first]);
  return seconds * static_cast<double>(arrivals.size()) / static_cast<double>(last - first);
}

bool is_long_enough(std::span<const double> seconds) {
  return std::ranges::min(seconds) >= kShortestTransfer ||
         std::ranges::max(seconds) >= kLongestTransfer;
}

double estimate_step_spread(std::vector<double> durations, int steps) {
  std::ranges::sort(durations);
  const double median = quantile(durations, 0.5);
  if (median <= 0) return 0;
  const double deviation =
      (quantile(durations, 0.75) - quantile(durations, 0.25)) / kQuartilesOfNormal / median;
  return std::min(std::sqrt(std::log1p(steps * deviation * deviation)), kWidestSpread);
}

}  // namespace gossamer::peer
