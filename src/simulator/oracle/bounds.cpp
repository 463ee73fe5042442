#include "simulator/oracle/bounds.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/world/connection.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::simulator {
namespace {

/// Durations without faults, but for slow processes.
struct Durations {
  double round = 0;  ///< seconds of one, the slowest peer's
  double trip = 0;   ///< of a row's chunks, or of link state updates, to a neighbour
  double frame = 0;  ///< bytes of a chunk's frame
};

Durations durations_of(const Scenario& scenario, const Protocol& protocol) {
  // A round takes the slowest peer's steps, and for each exchange the passage of its chunks over
  // the narrowest connection. The peers of a process do not share connections.
  double slowest = 1;
  for (const Fault& fault : scenario.fault_list())
    if (fault.kind == FaultKind::slow) slowest *= std::max(fault.amount, 1.0);
  Durations durations;
  durations.frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  const double copies = scenario.network.duplication > 0 ? 2 : 1;
  const double narrowest = scenario.network.bandwidth_mbit_s > 0
                               ? scenario.network.bandwidth_mbit_s * 1e6 / 8 / copies
                               : 1e12;
  const double spread =
      std::exp(4 * scenario.steps.step_spread);  // no step of a run is slower by this factor
  double mixes = 0, chunks = 0;
  const auto matrix = protocol.schedule->at(0);
  for (const ExchangeVolume& load : protocol.algorithm->communication(
           *protocol.schedule, *matrix, static_cast<std::size_t>(scenario.length))) {
    // A peer that waits for an answer may have asked a peer that waits for one itself, and so on.
    const double in_turn = protocol.algorithm->requirements().lockstep ? 1 : scenario.peers;
    mixes += in_turn;
    chunks += in_turn * load.at_once *
              std::ceil(static_cast<double>(load.message) / scenario.chunk_values);
  }
  const double resends = scenario.network.loss > 0 ? 2.0 * kLongestResend : 0;
  const double passage =
      (1 + resends) * (scenario.network.latency_ms + scenario.network.jitter_ms) / 1e3;
  // With a full window, or full buffers, a chunk waits until one before it has arrived.
  const double trips =
      2 * mixes + chunks / std::min(scenario.network.window, scenario.network.buffer_chunks);
  durations.round = scenario.steps.local_steps * scenario.steps.step_ms / 1e3 * slowest * spread +
                    trips * passage + chunks * durations.frame / narrowest;
  const double words = static_cast<double>(scenario.peers) * scenario.peers;
  durations.trip =
      trips * passage + (chunks * durations.frame + words * kFrameOverheadBytes) / narrowest;
  return durations;
}

}  // namespace

Time settling_time(const Scenario& scenario, const Protocol& protocol) {
  const Durations durations = durations_of(scenario, protocol);
  return from_seconds(6 * durations.trip + 2 * durations.round);
}

/// A part that is behind does four times the rounds in which an announcement reaches all peers, or
/// leaves rounds out so that it does fewer; and as many again where a second part is behind it.
std::optional<Time> longest_wait(const Scenario& scenario, const Protocol& protocol) {
  const int period = protocol.schedule->period();
  const bool waits = protocol.policy == Policy::sync || protocol.policy == Policy::stale;
  if (!waits || period == 0 || !protocol.algorithm->requirements().lockstep ||
      !topology::is_undirected(*protocol.schedule))
    return std::nullopt;
  const int distance = period + (protocol.policy == Policy::stale ? scenario.staleness - 1 : 0);
  const int notice = (scenario.peers - 1) * distance + 1;
  return from_seconds(8 * notice * durations_of(scenario, protocol).round) +
         settling_time(scenario, protocol);
}

Time faults_end(const Scenario& scenario) {
  double end = 0, delays = 0;
  const double frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  // What was sent at the end of a delay is still in flight, what is sent later arrives behind it,
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

/// W of those participants that have the most neighbours.
std::shared_ptr<const topology::MixingMatrix> densest_matrix(const Protocol& protocol) {
  std::shared_ptr<const topology::MixingMatrix> densest;
  std::size_t most = 0;
  for (const topology::ParticipantChange& change : protocol.participants().changes()) {
    auto matrix = protocol.schedule->at(change.first);
    std::size_t entries = 1;
    for (int i = 0; i < matrix->peers(); ++i) entries += matrix->in_neighbours(i).size();
    if (entries <= most) continue;
    most = entries;
    densest = std::move(matrix);
  }
  return densest;
}

/// The mean duration of a round in which all peers wait for the slowest peer and the latest packet.
double mean_round(const Scenario& scenario, const Protocol& protocol) {
  double slowest = 1;
  for (const Fault& fault : scenario.fault_list())
    if (fault.kind == FaultKind::slow) slowest *= std::max(fault.amount, 1.0);
  // The largest of n standard normals z is sqrt(2 ln n) at most on average, and steps are spread as
  // exp(width z).
  const double spread =
      std::exp(scenario.steps.step_spread * std::sqrt(2 * std::log(std::max(scenario.peers, 2))));
  const double steps = scenario.steps.local_steps * scenario.steps.step_ms / 1e3 * slowest * spread;
  if (protocol.policy == Policy::async) return steps;  // no peer waits for another
  const int room = std::min(scenario.network.window, scenario.network.buffer_chunks);
  const auto matrix = densest_matrix(protocol);
  std::size_t most_heard = 1;
  for (int i = 0; i < scenario.peers; ++i)
    most_heard = std::max(most_heard, matrix->in_neighbours(i).size());
  const bool asks = scenario.algorithm == "ad_psgd";
  const bool in_step = scenario.algorithm == "async_push_sum" && protocol.policy == Policy::sync;
  double turns = 0, chunks = 0, packets = 0;
  for (const ExchangeVolume& load : protocol.algorithm->communication(
           *protocol.schedule, *matrix, static_cast<std::size_t>(scenario.length))) {
    const double row =
        load.at_once * std::ceil(static_cast<double>(load.message) / scenario.chunk_values);
    // AD-PSGD's peers ask and are answered. Asynchronous push-sum's peers that keep in step take
    // their neighbours' rows one after the other: chunks of a later row for which there is no room
    // wait.
    const double pieces = row * (asks                    ? 2
                                 : in_step && row > room ? static_cast<double>(most_heard)
                                                         : 1);
    chunks += pieces;
    turns +=
        std::ceil(pieces / room);  // a chunk for which there is no room waits for the one before it
  }
  if (protocol.policy == Policy::deadline) turns *= 2;  // a row, and the message that it counts
  for (int i = 0; i < scenario.peers; ++i)
    packets += static_cast<double>(matrix->in_neighbours(i).size()) * room;
  // One of these packets is lost k times in a row with probability min(1, packets p^k), and is then
  // 2^(k-1) round trips later than a packet that is lost k - 1 times.
  const double one_way = (scenario.network.latency_ms + scenario.network.jitter_ms) / 1e3;
  double late = 0;
  for (int k = 1; k <= kMostLosses; ++k)
    late +=
        2 * one_way * (1 << (k - 1)) * std::min(1.0, packets * std::pow(scenario.network.loss, k));
  const double copies = scenario.network.duplication > 0 ? 2 : 1;
  const double frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  const double narrowest = scenario.network.bandwidth_mbit_s > 0
                               ? scenario.network.bandwidth_mbit_s * 1e6 / 8 / copies
                               : 1e12;
  return steps + turns * (one_way + late) + chunks * frame / narrowest;
}

/// Whether a fault may break connections.
bool breaks_links(FaultKind kind) {
  using enum FaultKind;
  const auto tolerated = {slow, delay, slow_reader, clock, failed_write, torn_write};
  return std::ranges::find(tolerated, kind) == tolerated.end();
}

}  // namespace

/// All rounds, one after the other, with no progress while a fault lasts: so the bound covers a
/// group that was delayed together and that the others then wait for. Where a fault breaks links,
/// peers may wait for the failure timeout, and peers that wait for these for a second one; then for
/// a reconnection. Rounds are taken half as long again: after a loss peers are out of step, and
/// what waits on narrow links arrives before what is new.
Time time_limit(const Scenario& scenario, const Protocol& protocol) {
  const double frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  double delayed = 0;
  for (const Fault& fault : scenario.fault_list()) {
    delayed += fault.lasts;
    if (fault.kind == FaultKind::delay)
      delayed += fault.amount;  // the chunks sent last arrive later by this
    if (fault.kind == FaultKind::slow_reader) delayed += frame / std::max(fault.amount, 1.0);
    if (breaks_links(fault.kind))
      delayed += 2 * scenario.network.failure_timeout + scenario.network.reconnect_delay +
                 seconds(kResetTime);
  }
  // Rows go from peer to peer to those that join, from some that stay.
  const std::vector<Fault> faults = scenario.fault_list();
  const auto changes = static_cast<double>(
      scenario.open ? static_cast<std::size_t>(std::ranges::count_if(
                          faults, [](const Fault& fault) { return is_of_open_run(fault.kind); }))
                    : protocol.participants().changes().size() - 1);
  delayed += changes * scenario.peers * seconds(settling_time(scenario, protocol));
  if (protocol.policy == Policy::async)
    delayed += seconds(settling_time(scenario, protocol));  // for answers of a peer that is back
  return from_seconds(1.5 * scenario.rounds * mean_round(scenario, protocol) + delayed);
}

Time run_limit(const Scenario& scenario, const Protocol& protocol) {
  return std::max(time_limit(scenario, protocol), faults_end(scenario)) + std::chrono::seconds(10);
}

}  // namespace gossamer::simulator
