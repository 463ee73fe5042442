// Bounds of virtual time that the oracle holds a run to: by when everybody is done, by when those
// who come back are there.
#include <algorithm>
#include <cmath>

#include "simulator/oracle/oracle.hpp"
#include "simulator/world/connection.hpp"

namespace gossamer::gossip::sim {
namespace {

/// What takes how long, faults left out but for slow processes and those that read slowly.
struct Durations {
  double round = 0;  ///< seconds of one, the slowest peer's
  double trip = 0;   ///< of a row's chunks, or of what is told of links, to a neighbour
  double frame = 0;  ///< bytes of a chunk's
};

Durations durations_of(const Scenario& scenario, const Parts& parts) {
  // A round takes the slowest peer's steps, and for each exchange a passage of its chunks over the
  // narrowest connection, which those of a process's peers do not share.
  double slowest = 1;
  for (const Fault& fault : scenario.fault_list())
    if (fault.kind == FaultKind::slow) slowest *= std::max(fault.amount, 1.0);
  Durations durations;
  durations.frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  const double copies = scenario.duplication > 0 ? 2 : 1;
  const double narrowest =
      scenario.bandwidth_mbit_s > 0 ? scenario.bandwidth_mbit_s * 1e6 / 8 / copies : 1e12;
  const double spread =
      std::exp(4 * scenario.step_spread);  // no step of a run takes so many times the mean
  double mixes = 0, chunks = 0;
  const auto matrix = parts.schedule->at(0);
  for (const ExchangeLoad& load : parts.algorithm->loads(
           *parts.schedule, *matrix, static_cast<std::size_t>(scenario.length))) {
    // Who waits for an answer may have asked somebody who waits for one too, and so on.
    const double in_turn = parts.algorithm->needs().rounds_end_together ? 1 : scenario.peers;
    mixes += in_turn;
    chunks += in_turn * std::ceil(static_cast<double>(load.message) / scenario.chunk_values);
  }
  const double resends = scenario.loss > 0 ? 2.0 * kLongestResend : 0;
  const double passage = (1 + resends) * (scenario.latency_ms + scenario.jitter_ms) / 1e3;
  // With a window full or the buffers on the way, a chunk waits until one before it has come.
  const double trips = 2 * mixes + chunks / std::min(scenario.window, scenario.buffer_chunks);
  durations.round = scenario.local_steps * scenario.step_ms / 1e3 * slowest * spread +
                    trips * passage + chunks * durations.frame / narrowest;
  const double words = static_cast<double>(scenario.peers) * scenario.peers;
  durations.trip =
      trips * passage + (chunks * durations.frame + words * kFrameOverheadBytes) / narrowest;
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
  // What was sent at the end of a delay is still on its way, what is sent later comes behind it,
  // and delays add up.
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

namespace {

/// What a round takes on average where the slowest of all peers, and the latest of all packets,
/// holds up all.
double mean_round(const Scenario& scenario, const Parts& parts) {
  double slowest = 1;
  for (const Fault& fault : scenario.fault_list())
    if (fault.kind == FaultKind::slow) slowest *= std::max(fault.amount, 1.0);
  // The largest of n standard normals z is sqrt(2 ln n) at most on average, and steps are spread as
  // exp(width z).
  const double spread =
      std::exp(scenario.step_spread * std::sqrt(2 * std::log(std::max(scenario.peers, 2))));
  const double steps = scenario.local_steps * scenario.step_ms / 1e3 * slowest * spread;
  if (parts.policy == Policy::async) return steps;  // nobody is waited for
  const int room = std::min(scenario.window, scenario.buffer_chunks);
  const auto matrix = parts.schedule->at(0);
  std::size_t most_heard = 1;
  for (int i = 0; i < scenario.peers; ++i)
    most_heard = std::max(most_heard, matrix->in_neighbours(i).size());
  const bool asks = scenario.algorithm == "ad_psgd";
  const bool in_step = scenario.algorithm == "async_push_sum" && parts.policy == Policy::sync;
  double turns = 0, chunks = 0, packets = 0;
  for (const ExchangeLoad& load : parts.algorithm->loads(
           *parts.schedule, *matrix, static_cast<std::size_t>(scenario.length))) {
    const double row = std::ceil(static_cast<double>(load.message) / scenario.chunk_values);
    // AD-PSGD's peers ask and are answered. Asynchronous push-sum's that are in step take their
    // neighbours' rows one after the other: what of a later one has no room waits for its turn.
    const double pieces = row * (asks                    ? 2
                                 : in_step && row > room ? static_cast<double>(most_heard)
                                                         : 1);
    chunks += pieces;
    turns += std::ceil(
        pieces / room);  // a chunk for which there is no room waits until one before it has come
  }
  if (parts.policy == Policy::deadline) turns *= 2;  // and it is told that the row counts
  for (int i = 0; i < scenario.peers; ++i)
    packets += static_cast<double>(matrix->in_neighbours(i).size()) * room;
  // Of so many packets one is lost k times in a row with probability min(1, packets p^k), and is
  // then 2^(k-1) ways there and back later than one that is lost k - 1 times.
  const double one_way = (scenario.latency_ms + scenario.jitter_ms) / 1e3;
  double late = 0;
  for (int k = 1; k <= kMostLosses; ++k)
    late += 2 * one_way * (1 << (k - 1)) * std::min(1.0, packets * std::pow(scenario.loss, k));
  const double copies = scenario.duplication > 0 ? 2 : 1;
  const double frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  const double narrowest =
      scenario.bandwidth_mbit_s > 0 ? scenario.bandwidth_mbit_s * 1e6 / 8 / copies : 1e12;
  return steps + turns * (one_way + late) + chunks * frame / narrowest;
}

/// Whether a fault may break connections.
bool breaks_links(FaultKind kind) {
  using enum FaultKind;
  const auto borne = {slow, delay, slow_reader, clock, failed_write, torn_write};
  return std::ranges::find(borne, kind) == borne.end();
}

}  // namespace

/// All rounds, one after the other, and while a fault lasts as if nobody did anything: so a group
/// that was held up together, and is waited for while it does the rounds that it missed, is no
/// exception. Where a fault breaks links, all may wait for the silence, and those whom that held up
/// for one more; then for a call. Beside that, rounds take half as long again: after a loss peers
/// are out of step, and what waits on narrow links comes before what is new.
Time time_limit(const Scenario& scenario, const Parts& parts) {
  const double frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  double held_up = 0;
  for (const Fault& fault : scenario.fault_list()) {
    held_up += fault.lasts;
    if (fault.kind == FaultKind::delay)
      held_up += fault.amount;  // what was sent last comes so much later
    if (fault.kind == FaultKind::slow_reader) held_up += frame / std::max(fault.amount, 1.0);
    if (breaks_links(fault.kind))
      held_up += 2 * scenario.silence + scenario.call_again + seconds(kResetTime);
  }
  if (parts.policy == Policy::async)
    held_up += seconds(patience_of(scenario, parts));  // for answers of one that is back
  return from_seconds(1.5 * scenario.rounds * mean_round(scenario, parts) + held_up);
}

Time run_limit(const Scenario& scenario, const Parts& parts) {
  return std::max(time_limit(scenario, parts), faults_end(scenario)) + std::chrono::seconds(10);
}

}  // namespace gossamer::gossip::sim
