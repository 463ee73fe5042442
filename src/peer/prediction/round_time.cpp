#include "peer/prediction/round_time.hpp"

#include <cmath>

#include "gossip/links/link.hpp"

namespace gossamer::peer {
namespace {

constexpr gossip::Round kSampled = 100;  // rounds of a random sequence

/// Of `messages` messages of so many values each.
double bytes_of(const Setup& setup, std::uint64_t values, double messages) {
  const double payload = 4.0 * static_cast<double>(setup.codec->words(values));
  const double chunk = 1024.0 * setup.config.net.chunk_kib;
  return messages *
         (payload + std::ceil(payload / chunk) * static_cast<double>(gossip::kFrameOverheadBytes));
}

/// Of so many values in messages of `message`, by the nodes that send and receive the most.
double seconds_of(const Setup& setup, const gossip::NodeLoad& most, std::uint64_t message) {
  if (most.sent == 0 && most.received == 0) return 0;  // nobody is there to talk to
  const SimOptions& sim = setup.config.sim;
  const auto through = [&](double mbit_s, std::uint64_t values) {
    const double messages = static_cast<double>(values) / static_cast<double>(message);
    return mbit_s > 0 ? 8 * bytes_of(setup, message, messages) / (mbit_s * 1e6) : 0;
  };
  // All messages but one in turn through what is shared, and the last one through the slowest of
  // all.
  const double before =
      std::max(through(sim.uplink_mbit_s, most.sent - std::min(most.sent, message)),
               through(sim.downlink_mbit_s, most.received - std::min(most.received, message)));
  double last = 0;
  for (const double mbit_s : {sim.bandwidth_mbit_s, sim.uplink_mbit_s, sim.downlink_mbit_s})
    last = std::max(last, through(mbit_s, message));
  return sim.latency_ms / 1e3 + before + last;
}

double seconds_of(const Setup& setup, const gossip::ExchangeLoad& load) {
  gossip::NodeLoad most;
  for (int i = 0; i < setup.nodes(); ++i) {
    const gossip::NodeLoad own = load.of(i);
    most = {std::max(most.sent, own.sent), std::max(most.received, own.received)};
  }
  return seconds_of(setup, most, load.message) +
         seconds_of(setup, {load.last, load.last}, load.message);
}

/// Local steps of a round, where they are the same for all.
std::optional<std::uint64_t> steps_of_all(const Setup& setup) {
  const std::uint64_t steps = setup.steps_per_round(0);
  for (int i = 1; i < setup.workers(); ++i)
    if (setup.steps_per_round(i) != steps) return std::nullopt;
  return steps;
}

}  // namespace

std::optional<RoundTime> round_time(const Setup& setup) {
  const SimOptions& sim = setup.config.sim;
  const gossip::AlgorithmNeeds needs = setup.algorithm->needs();
  const auto steps = steps_of_all(setup);
  if (setup.config.exchange.policy != "sync" || !needs.rounds_end_together || !steps)
    return std::nullopt;
  // Who waits for whom decides, where links or steps differ, and not the busiest link alone.
  if (!setup.network.is_even() || (sim.compute_spread > 0 && setup.step_ms() > 0))
    return std::nullopt;
  RoundTime time;
  const double slowest = sim.slow_peers > 0 ? std::max(1.0, sim.slow_factor) : 1.0;
  const double gradients = needs.one_node ? setup.config.run.peers : 1;
  time.training = static_cast<double>(*steps) * gradients * setup.step_ms() / 1e3 * slowest;
  if (needs.one_node) return time;
  const gossip::Round rounds = setup.schedule->period() > 0
                                   ? static_cast<gossip::Round>(setup.schedule->period())
                                   : kSampled;
  for (gossip::Round t = 0; t < rounds; ++t) {
    const auto w = setup.schedule->at(t);
    for (const gossip::ExchangeLoad& load :
         setup.algorithm->loads(*setup.schedule, *w, setup.parameters))
      (load.beside_training ? time.beside : time.after) +=
          seconds_of(setup, load) / static_cast<double>(rounds);
  }
  return time;
}

}  // namespace gossamer::peer
