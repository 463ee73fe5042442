#include "peer/probe/measurement.hpp"

#include <algorithm>
#include <cmath>

namespace gossamer::peer {
namespace {

constexpr float kMostMeasured = 1e9F;

/// Which process hosts each node.
std::vector<std::size_t> processes_of(const std::vector<std::vector<int>>& hosted) {
  std::size_t nodes = 0;
  for (const std::vector<int>& ids : hosted) nodes += ids.size();
  std::vector<std::size_t> process(nodes);
  for (std::size_t p = 0; p < hosted.size(); ++p)
    for (const int node : hosted[p]) process.at(static_cast<std::size_t>(node)) = p;
  return process;
}

}  // namespace

std::vector<float> ProcessMeasurement::values() const {
  std::vector<float> values;
  const auto add = [&values](double value) {
    values.push_back(std::min(static_cast<float>(value), kMostMeasured));
  };
  for (const Pair& pair : links) {
    add(pair.latency.latency_ms), add(pair.latency.jitter_ms);
    add(pair.sent_mbit_s), add(pair.received_mbit_s);
  }
  add(uplink_mbit_s), add(downlink_mbit_s), add(steps.step_ms), add(steps.spread);
  return values;
}

std::optional<ProcessMeasurement> ProcessMeasurement::of(std::span<const float> values) {
  if (!std::ranges::all_of(values, [](float v) { return v >= 0 && v <= kMostMeasured; }))
    return std::nullopt;
  ProcessMeasurement measured((values.size() - 4) / 4);
  for (std::size_t p = 0; p < measured.links.size(); ++p) {
    const auto four = values.subspan(4 * p, 4);
    measured.links[p] = {{four[0], four[1]}, four[2], four[3]};
  }
  const auto last = values.last(4);
  measured.uplink_mbit_s = last[0], measured.downlink_mbit_s = last[1];
  measured.steps = {last[2], std::min(static_cast<double>(last[3]), 2.0)};
  return measured;
}

ProbeTables tables_of(const std::vector<ProcessMeasurement>& measured,
                      const std::vector<std::vector<int>>& hosted, int trained_nodes) {
  const std::vector<std::size_t> process = processes_of(hosted);
  std::vector<double> latencies, jitters, bandwidths;
  for (const std::size_t from : process)
    for (const std::size_t to : process) {
      ProcessMeasurement::Pair pair;  // of one process: 0, without limit
      if (from < to) pair = measured[from].links[to];
      if (from > to) {
        pair = measured[to].links[from];
        std::swap(pair.sent_mbit_s, pair.received_mbit_s);
      }
      latencies.push_back(pair.latency.latency_ms);
      jitters.push_back(pair.latency.jitter_ms);
      bandwidths.push_back(pair.sent_mbit_s);
    }
  ProbeTables tables;
  const int nodes = static_cast<int>(process.size());
  tables.latencies_ms = gossip::LinkTable(nodes, std::move(latencies));
  tables.jitters_ms = gossip::LinkTable(nodes, std::move(jitters));
  tables.bandwidths_mbit_s = gossip::LinkTable(nodes, std::move(bandwidths));
  for (int node = 0; node < nodes; ++node) {
    const std::size_t p = process[static_cast<std::size_t>(node)];
    const auto sharing = static_cast<double>(hosted[p].size());
    ProbedNode probed;
    if (node < trained_nodes)
      probed.step_ms = measured[p].steps.step_ms, probed.step_spread = measured[p].steps.spread;
    probed.uplink_mbit_s = measured[p].uplink_mbit_s / sharing;
    probed.downlink_mbit_s = measured[p].downlink_mbit_s / sharing;
    tables.nodes.push_back(probed);
  }
  return tables;
}

}  // namespace gossamer::peer
