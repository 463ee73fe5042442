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

/// Duration of an exchange in which the busiest node sends and receives `most` values, in messages
/// of `message` values.
double seconds_of(const Setup& setup, const gossip::NodeVolume& most, std::uint64_t message) {
  if (most.sent == 0 && most.received == 0) return 0;  // there is only one node
  const SimOptions& sim = setup.config.sim;
  const double parts = parts_side_by_side(setup);
  const auto seconds_at = [&](double mbit_s, std::uint64_t values) {
    const double messages = static_cast<double>(values) / static_cast<double>(message);
    return mbit_s > 0 ? 8 * bytes_of(setup, message, messages) / (mbit_s * 1e6 * parts) : 0;
  };
  // All messages but the last go through the shared up- and downlinks one after another; the last
  // one is limited by the slowest of the capacities.
  const double before =
      std::max(seconds_at(sim.uplink_mbit_s, most.sent - std::min(most.sent, message)),
               seconds_at(sim.downlink_mbit_s, most.received - std::min(most.received, message)));
  double last = 0;
  for (const double mbit_s : {sim.bandwidth_mbit_s, sim.uplink_mbit_s, sim.downlink_mbit_s})
    last = std::max(last, seconds_at(mbit_s, message));
  return sim.latency_ms / 1e3 + before + last;
}

double seconds_of(const Setup& setup, const gossip::ExchangeVolume& volume) {
  gossip::NodeVolume most;
  for (int i = 0; i < setup.nodes(); ++i) {
    const gossip::NodeVolume own = volume.of(i);
    most = {std::max(most.sent, own.sent), std::max(most.received, own.received)};
  }
  return seconds_of(setup, most, volume.message) +
         seconds_of(setup, {volume.last, volume.last}, volume.message);
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
  RoundTime time;
  const double slowest = sim.slow_peers > 0 ? std::max(1.0, sim.slow_factor) : 1.0;
  const double gradients = needs.one_node ? setup.config.run.peers : 1;
  time.training = static_cast<double>(*steps) * gradients * setup.step_ms() / 1e3 * slowest;
  if (needs.one_node) return time;
  const gossip::Round rounds = setup.schedule->period() > 0
                                   ? static_cast<gossip::Round>(setup.schedule->period())
                                   : kSampledRounds;
  for (gossip::Round t = 0; t < rounds; ++t) {
    const auto w = setup.schedule->at(t);
    for (const gossip::ExchangeVolume& volume :
         setup.algorithm->communication(*setup.schedule, *w, setup.parameters))
      (volume.beside_training ? time.overlapped : time.exposed) +=
          seconds_of(setup, volume) / static_cast<double>(rounds);
  }
  return time;
}

}  // namespace gossamer::peer
