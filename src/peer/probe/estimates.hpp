// Properties of a link, estimated from times of arrival. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gossip/scheduler.hpp"

namespace gossamer::peer {

/// Of a link, in one direction: a byte takes the latency and a uniform delay of up to `jitter_ms`.
struct LatencyEstimate {
  double latency_ms = 0, jitter_ms = 0;
};

/// From round trips, in seconds, at least one. Both directions are taken to be alike: two clocks
/// that differ cannot tell them apart. With one-way delays L + U(0, J), a round trip has the median
/// 2L + J and the interquartile range (2 − √2) J. Quartiles ignore the few round trips in which a
/// process was not running.
LatencyEstimate estimate_latency(std::vector<double> round_trips);

/// The sizes of one transfer: `parts` messages of `values` float32 values each.
struct TransferSize {
  int values = 0, parts = 0;
  /// With the headers of the messages, of which each is one chunk.
  double bits() const;
  bool operator==(const TransferSize&) const = default;
};

/// Each transfer of a measurement has twice the bytes of the one before, from 32 KiB to 64 MiB, in
/// at least 16 parts of at most kMostPartValues. `step`: 0 to kTransferSteps − 1.
TransferSize transfer_size(int step);
inline constexpr int kTransferSteps = 12;
inline constexpr std::size_t kMostPartValues = 65536;  // 256 KiB

/// The time of a whole transfer at the rate at which its last three quarters arrived: TCP starts
/// slowly, and a token bucket starts full. `arrivals`: of its parts, ascending, at least 4. 0: they
/// arrived at once.
double transfer_seconds(std::span<const gossip::Time> arrivals);

/// Whether transfers that took so long, in seconds, are long enough to be the last ones: all of
/// them lasted 0.4 s, or one 1.6 s. Not empty.
bool is_long_enough(std::span<const double> seconds);

/// The width of the log-normal factor of single steps, at most 2, from durations of `steps` steps
/// each. A sum of H independent steps with the relative variance v has the relative variance v/H,
/// and a log-normal number of width σ has exp(σ²) − 1. The deviation of the durations is that of
/// their quartiles, as a few of them say when the process was not running.
double estimate_step_spread(std::vector<double> durations, int steps);

}  // namespace gossamer::peer
