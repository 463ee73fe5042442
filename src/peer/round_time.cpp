#include "peer/round_time.hpp"

#include <cmath>

#include "gossip/link.hpp"

namespace gossamer::peer {
namespace {

constexpr gossip::Round kSampled = 100;  // rounds of a random sequence

/// Of `messages` messages of so many values each.
double bytes_of(const Setup& setup, std::uint64_t values, double messages) {
  const double payload = 4.0 * static_cast<double>(setup.codec->words(values));
  const double chunk = 1024.0 * setup.config.net.chunk_kib;
  return messages * (payload + std::ceil(payload / chunk) * static_cast<double>(gossip::kFrameOverheadBytes));
}

double seconds_of(const Setup& setup, const gossip::ExchangeLoad& load) {
  if (load.sent == 0 && load.received == 0) return 0;  // nobody is there to talk to
  const SimOptions& sim = setup.config.sim;
  const auto through = [&](double mbit_s, std::uint64_t values) {
    const double messages = static_cast<double>(values) / static_cast<double>(load.message);
    return mbit_s > 0 ? 8 * bytes_of(setup, load.message, messages) / (mbit_s * 1e6) : 0;
  };
  // All messages but one in turn through what is shared, and the last one through the slowest of all.
  const double before = std::max(through(sim.uplink_mbit_s, load.sent - std::min(load.sent, load.message)),
                                 through(sim.downlink_mbit_s, load.received - std::min(load.received, load.message)));
  double last = 0;
  for (const double mbit_s : {sim.bandwidth_mbit_s, sim.uplink_mbit_s, sim.downlink_mbit_s})
    last = std::max(last, through(mbit_s, load.message));
  return sim.latency_ms / 1e3 + before + last;
}

}  // namespace

std::optional<RoundTime> round_time(const Setup& setup) {
  const SimOptions& sim = setup.config.sim;
  if (setup.config.exchange.policy != "sync") return std::nullopt;
  RoundTime time;
  const double slowest = sim.slow_peers > 0 ? std::max(1.0, sim.slow_factor) : 1.0;
  const double gradients = setup.algorithm->needs().one_node ? setup.config.run.peers : 1;
  time.training = setup.algorithm->steps_per_round() * gradients * setup.step_ms() / 1e3 * slowest;
  if (setup.algorithm->needs().one_node) return time;
  const gossip::Round rounds = setup.schedule->period() > 0 ? static_cast<gossip::Round>(setup.schedule->period()) : kSampled;
  for (gossip::Round t = 0; t < rounds; ++t) {
    const auto loads = setup.algorithm->loads(*setup.schedule, *setup.schedule->at(t), setup.parameters);
    if (!loads) return std::nullopt;
    for (const gossip::ExchangeLoad& load : *loads)
      (load.beside_training ? time.beside : time.after) += seconds_of(setup, load) / static_cast<double>(rounds);
  }
  return time;
}

}  // namespace gossamer::peer
