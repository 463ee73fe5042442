#include "gossip/links/network_model.hpp"

#include <algorithm>
#include <vector>

namespace gossamer::gossip {
namespace {

constexpr double kBytesPerMegabit = 1e6 / 8;

}  // namespace

int NetworkModel::region_of(int node, int regions) const {
  if (regions == spec_.peers + spec_.servers) return node;
  const bool is_server = node >= spec_.peers;
  const std::int64_t place = is_server ? node - spec_.peers : node,
                     places = is_server ? spec_.servers : spec_.peers;
  return static_cast<int>(place * regions / places);
}

LinkModel NetworkModel::link(int from, int to) const {
  const auto listed = [&](const std::optional<LinkTable>& table, double otherwise) {
    return table ? table->at(region_of(from, table->regions()), region_of(to, table->regions()))
                 : otherwise;
  };
  RandomStream pair(spec_.seed, static_cast<std::uint32_t>(std::min(from, to)), Purpose::network,
                    static_cast<std::uint64_t>(std::max(from, to)));
  LinkModel link;
  link.latency = from_milliseconds(listed(spec_.latencies, spec_.latency_ms) *
                                   spec_.latency_spread.factor(pair));
  link.bytes_per_second = listed(spec_.bandwidths, spec_.bandwidth_mbit_s) * kBytesPerMegabit *
                          spec_.bandwidth_spread.factor(pair);
  link.jitter = from_milliseconds(listed(spec_.jitters, spec_.jitter_ms));
  link.jitter_draws = RandomStream(spec_.seed, static_cast<std::uint32_t>(from), Purpose::jitter,
                                   static_cast<std::uint64_t>(to));
  return link;
}

double NetworkModel::longest_latency() const {
  const double longest =
      spec_.latencies ? std::ranges::max(spec_.latencies->values()) : spec_.latency_ms;
  const double jitter = spec_.jitters ? std::ranges::max(spec_.jitters->values()) : spec_.jitter_ms;
  return (longest * spec_.latency_spread.largest() + jitter) / 1e3;
}

double NetworkModel::least_bandwidth() const {
  double least = spec_.bandwidth_mbit_s;
  if (spec_.bandwidths)
    for (const double mbit_s : spec_.bandwidths->values())
      if (mbit_s > 0 && (least == 0 || mbit_s < least)) least = mbit_s;
  return least * kBytesPerMegabit * spec_.bandwidth_spread.smallest();
}

bool NetworkModel::is_even() const {
  const auto alike = [](const std::optional<LinkTable>& table, double otherwise,
                        const Spread& spread) {
    return table ? false : otherwise == 0 || spread.width == 0;
  };
  return alike(spec_.latencies, spec_.latency_ms, spec_.latency_spread) &&
         alike(spec_.bandwidths, spec_.bandwidth_mbit_s, spec_.bandwidth_spread) &&
         alike(spec_.jitters, spec_.jitter_ms, {.width = 1});
}

}  // namespace gossamer::gossip
