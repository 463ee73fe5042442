#include "peer/prediction/round_time.hpp"

#include <cmath>

#include "gossip/link.hpp"
#include "peer/setup/virtual_network.hpp"

namespace gossamer::peer {
namespace {

constexpr gossip::Round kSampledRounds = 100;  // of a random sequence of matrices

/// Bytes of `messages` messages of `values` values each, with headers.
double bytes_of(const Setup& setup, std::uint64_t values, double messages) {
  const double payload = 4.0 * static_cast<double>(setup.codec->words(values));
  const double chunk = 1024.0 * setup.config.net.chunk_kib;
  return messages *
         (payload + std::ceil(payload / chunk) * static_cast<double>(gossip::kFrameOverheadBytes));
}

struct ExchangeTime {
  double seconds = 0;
  double occupied = 0;  ///< as in RoundTime
};

/// Of an exchange in which the busiest node sends and receives `most` values, in messages of
/// `message` values, `at_once` of them over each link.
ExchangeTime time_of(const Setup& setup, const gossip::NodeVolume& most, std::uint64_t message,
                     int at_once) {
  if (most.sent == 0 && most.received == 0) return {};  // there is only one node
  const SimOptions& sim = setup.config.sim;
  const double parts = parts_side_by_side(setup);
  const auto seconds_at = [&](double mbit_s, std::uint64_t values) {
    const double messages = static_cast<double>(values) / static_cast<double>(message);
    return mbit_s > 0 ? 8 * bytes_of(setup, message, messages) / (mbit_s * 1e6 * parts) : 0;
  };
  double slowest = 0;  // for one message
  for (const double mbit_s : {sim.bandwidth_mbit_s, sim.uplink_mbit_s, sim.downlink_mbit_s})
    slowest = std::max(slowest, seconds_at(mbit_s, message));
  // Messages leave through the uplink one after another, the first one to each neighbour before the
  // second ones. What is sent to one neighbour at once shares its link.
  const auto wait = [&](std::uint64_t sent) {
    return seconds_at(sim.uplink_mbit_s, sent - std::min(sent, message));
  };
  const auto rows = static_cast<std::uint64_t>(at_once);
  const double on_link = seconds_at(sim.bandwidth_mbit_s, rows * message),
               received = seconds_at(sim.downlink_mbit_s, most.received),
               sent = std::max(wait(most.sent) + slowest, wait(most.sent / rows) + on_link);
  // The downlink begins with the first byte that arrives.
  return {sim.latency_ms / 1e3 + std::max(sent, received),
          std::max({seconds_at(sim.uplink_mbit_s, most.sent), on_link, received})};
}

ExchangeTime time_of(const Setup& setup, const gossip::ExchangeVolume& volume) {
  gossip::NodeVolume most;
  for (int i = 0; i < setup.nodes(); ++i) {
    const gossip::NodeVolume own = volume.of(i);
    most = {std::max(most.sent, own.sent), std::max(most.received, own.received)};
  }
  const ExchangeTime all = time_of(setup, most, volume.message, volume.at_once),
                     last = time_of(setup, {volume.last, volume.last}, volume.message, 1);
  return {all.seconds + last.seconds, all.occupied + last.occupied};
}

/// The number of local steps in a round, if it is the same for all peers.
std::optional<std::uint64_t> steps_of_all(const Setup& setup) {
  const std::uint64_t steps = setup.steps_per_round(0);
  for (int i = 1; i < setup.workers(); ++i)
    if (setup.steps_per_round(i) != steps) return std::nullopt;
  return steps;
}

}  // namespace

std::optional<RoundTime> round_time(const Setup& setup) {
  const SimOptions& sim = setup.config.sim;
  const gossip::AlgorithmRequirements needs = setup.algorithm->requirements();
  const auto steps = steps_of_all(setup);
  if (!gossip::is_lockstep(setup.config.exchange.kind()) || !needs.lockstep || !steps)
    return std::nullopt;
  // If links or steps differ, the busiest link alone does not determine the duration.
  if (!setup.network.is_even() || (sim.compute_spread > 0 && setup.step_ms() > 0))
    return std::nullopt;
  const bool all_slow = sim.slow_peers >= setup.workers();
  // A neighbour that is ready sooner than a slow peer sends its row meanwhile, so that its latency
  // is hidden. A server waits for all workers and all wait for it, so nothing is hidden.
  const bool some_slow = sim.slow_peers > 0 && !all_slow && sim.slow_factor != 1;
  if (some_slow && setup.step_ms() > 0 && needs.servers == 0) return std::nullopt;
  RoundTime time;
  const double slowest = all_slow    ? sim.slow_factor
                         : some_slow ? std::max(1.0, sim.slow_factor)
                                     : 1.0;
  const double gradients = needs.one_node ? setup.config.run.peers : 1;
  time.training = static_cast<double>(*steps) * gradients * setup.step_ms() / 1e3 * slowest;
  if (needs.one_node) return time;
  const gossip::Round rounds = setup.schedule->period() > 0
                                   ? static_cast<gossip::Round>(setup.schedule->period())
                                   : kSampledRounds;
  for (gossip::Round t = 0; t < rounds; ++t) {
    const auto w = setup.schedule->at(t);
    for (const gossip::ExchangeVolume& volume :
         setup.algorithm->communication(*setup.schedule, *w, setup.parameters)) {
      const ExchangeTime exchange = time_of(setup, volume);
      (volume.beside_training ? time.overlapped : time.exposed) +=
          exchange.seconds / static_cast<double>(rounds);
      if (volume.beside_training) time.occupied += exchange.occupied / static_cast<double>(rounds);
    }
  }
  return time;
}

}  // namespace gossamer::peer
