// Bounds of virtual time that the oracle holds a run to: by when everybody is done, by when those who come back are there.
#include <algorithm>
#include <cmath>

#include "gossip/sim/connection.hpp"
#include "gossip/sim/oracle.hpp"

namespace gossamer::gossip::sim {
namespace {

/// What takes how long, faults left out but for slow processes and those that read slowly.
struct Durations {
  double round = 0;    ///< seconds of one, the slowest peer's
  double trip = 0;     ///< of a row's chunks, or of what is told of links, to a neighbour
  double frame = 0;    ///< bytes of a chunk's
};

Durations durations_of(const Scenario& scenario, const Parts& parts) {
  // A round takes the slowest peer's steps, and for each exchange a passage of its chunks over the narrowest connection,
  // which those of a process's peers do not share.
  double slowest = 1;
  for (const Fault& fault : scenario.fault_list())
    if (fault.kind == FaultKind::slow) slowest *= std::max(fault.amount, 1.0);
  Durations durations;
  durations.frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  const double copies = scenario.duplication > 0 ? 2 : 1;
  const double narrowest = scenario.bandwidth_mbit_s > 0 ? scenario.bandwidth_mbit_s * 1e6 / 8 / copies : 1e12;
  const double spread = std::exp(4 * scenario.step_spread);  // no step of a run takes so many times the mean
  double mixes = 0, chunks = 0;
  const auto matrix = parts.schedule->at(0);
  for (const ExchangeLoad& load : parts.algorithm->loads(*parts.schedule, *matrix, static_cast<std::size_t>(scenario.length))) {
    // Who waits for an answer may have asked somebody who waits for one too, and so on.
    const double in_turn = parts.algorithm->needs().rounds_end_together ? 1 : scenario.peers;
    mixes += in_turn;
    chunks += in_turn * std::ceil(static_cast<double>(load.message) / scenario.chunk_values);
  }
  const double resends = scenario.loss > 0 ? 2.0 * kLongestResend : 0;
  const double passage = (1 + resends) * (scenario.latency_ms + scenario.jitter_ms) / 1e3;
  // With a window full or the buffers on the way, a chunk waits until one before it has come.
  const double trips = 2 * mixes + chunks / std::min(scenario.window, scenario.buffer_chunks);
  durations.round = scenario.local_steps * scenario.step_ms / 1e3 * slowest * spread + trips * passage +
                    chunks * durations.frame / narrowest;
  const double words = static_cast<double>(scenario.peers) * scenario.peers;
  durations.trip = trips * passage + (chunks * durations.frame + words * kFrameOverheadBytes) / narrowest;
  return durations;
}

}  // namespace

Time patience_of(const Scenario& scenario, const Parts& parts) {
  const Durations durations = durations_of(scenario, parts);
  return from_seconds(6 * durations.trip + 2 * durations.round);
}

Time faults_end(const Scenario& scenario) {
  double end = 0, delays = 0;
  const double frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  // What was sent at the end of a delay is still on its way, what is sent later comes behind it, and delays add up.
  for (const Fault& fault : scenario.fault_list())
    if (fault.kind == FaultKind::delay) delays += fault.amount;
  for (const Fault& fault : scenario.fault_list()) {
    const double after = fault.kind == FaultKind::slow_reader ? frame / std::max(fault.amount, 1.0)
                         : fault.kind == FaultKind::delay     ? delays
                                                              : 0;
    end = std::max(end, fault.at + fault.lasts + after);
  }
  return from_seconds(end);
}

Time time_limit(const Scenario& scenario, const Parts& parts) {
  const Durations durations = durations_of(scenario, parts);
  double held_up = 0;
  int breaks = 0;
  for (const Fault& fault : scenario.fault_list()) {
    held_up += fault.lasts + fault.amount * (fault.kind == FaultKind::delay ? 4 : 0);
    if (fault.kind == FaultKind::slow_reader) held_up += fault.lasts + 64 * durations.frame / std::max(fault.amount, 1.0);
    // Of a connection that is shut and opened by turns, each time may be the one that breaks it.
    breaks += fault.kind == FaultKind::clog ? 1 + static_cast<int>(fault.lasts / scenario.silence) : 1;
  }
  const double each = scenario.silence + scenario.call_again + seconds(kResetTime);
  return from_seconds(10 + 3 * scenario.rounds * durations.round + held_up + breaks * each * scenario.peers);
}

}  // namespace gossamer::gossip::sim
