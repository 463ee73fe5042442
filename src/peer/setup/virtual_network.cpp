#include "peer/setup/virtual_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "peer/setup/setup.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

Error sim_error(const std::string& key, const std::string& what) {
  return {ErrorKind::invalid, fmt::format("sim.{}: {}", key, what)};
}

/// A key that names a table, and the key of the single value that the table replaces.
struct TableKey {
  std::string key, path;
  std::string value_key;
  double value;
};

Result<std::optional<gossip::LinkTable>> read_table(const TableKey& table_key, int peers,
                                                    int servers) {
  if (table_key.path.empty()) return std::optional<gossip::LinkTable>();
  if (table_key.value != 0)
    return sim_error(table_key.key, fmt::format("the table replaces sim.{}; set only one of them",
                                                table_key.value_key));
  const auto with_key = [&table_key](const Error& error) {
    return Error{error.kind, fmt::format("sim.{}: {}", table_key.key, error.message)};
  };
  const auto text = read_file(table_key.path, most_table_bytes(peers + servers));
  if (!text.ok()) return with_key(text.error());
  auto table = gossip::LinkTable::parse(*text, table_key.path);
  if (!table.ok()) return with_key(table.error());
  if (const int regions = table->regions(); regions > peers && regions != peers + servers)
    return sim_error(
        table_key.key,
        fmt::format("{} has {} regions for {} peers{}; a table has at most one region per peer",
                    table_key.path, regions, peers,
                    servers > 0 ? fmt::format(" and {} servers", servers) : ""));
  return std::optional(std::move(table).value());
}

Status check_width(const std::string& key, const gossip::Spread& spread) {
  if (spread.form != gossip::Spread::Form::uniform || spread.width < 1) return {};
  return sim_error(key, fmt::format("uniform factors between 1 - {0} and 1 + {0} reach 0; use a "
                                    "width below 1, or sim.spread = log_normal",
                                    spread.width));
}

/// The tables of sim.probe. They describe the whole network, so no other key has a value.
Result<VirtualNetwork> read_probe(const Config& config, gossip::NetworkSpec spec) {
  const ParameterValues& values = config.resolved.at("sim");
  for (const SectionSpec& section : section_specs())
    for (const ParameterSpec& key : section.keys)
      if (section.name == "sim" && key.name != "probe" && values.at(key.name) != key.default_value)
        return sim_error(key.name, "the tables of sim.probe replace it; set only one of them");
  auto read = read_probe_tables(config.sim.probe, spec.peers + spec.servers);
  if (!read.ok())
    return Error{read.error().kind, fmt::format("sim.probe: {}", read.error().message)};
  ProbeTables tables = std::move(read).value();
  spec.latencies = std::move(tables.latencies_ms);
  spec.jitters = std::move(tables.jitters_ms);
  spec.bandwidths = std::move(tables.bandwidths_mbit_s);
  return VirtualNetwork{gossip::NetworkModel(std::move(spec)), std::move(tables.nodes)};
}

double bytes_per_second(double mbit_s) { return mbit_s * 1e6 / 8; }

/// The least of the values that are a limit; 0 if none is.
double least_limit(const std::vector<ProbedNode>& nodes, double ProbedNode::* limit) {
  double least = 0;
  for (const ProbedNode& node : nodes)
    if (node.*limit > 0 && (least == 0 || node.*limit < least)) least = node.*limit;
  return least;
}

gossip::Spread step_spread(double width) { return {.width = width}; }

}  // namespace

Result<VirtualNetwork> make_virtual_network(const Config& config, int servers) {
  const SimOptions& sim = config.sim;
  const auto form =
      sim.spread == "uniform" ? gossip::Spread::Form::uniform : gossip::Spread::Form::log_normal;
  gossip::NetworkSpec spec;
  spec.peers = config.run.peers;
  spec.servers = servers;
  spec.seed = config.run.seed;
  if (!sim.probe.empty() && config.model.split.is_on())
    return sim_error("probe", "a probe has no links between the workers of a replica (split)");
  if (!sim.probe.empty()) return read_probe(config, std::move(spec));
  spec.latency_ms = sim.latency_ms;
  spec.bandwidth_mbit_s = sim.bandwidth_mbit_s;
  spec.jitter_ms = sim.jitter_ms;
  spec.latency_spread = {form, sim.latency_spread};
  spec.bandwidth_spread = {form, sim.bandwidth_spread};
  GOSSAMER_TRY_STATUS(check_width("latency_spread", spec.latency_spread));
  GOSSAMER_TRY_STATUS(check_width("bandwidth_spread", spec.bandwidth_spread));
  const TableKey latencies{"latency_file", sim.latency_file, "latency_ms", sim.latency_ms};
  const TableKey bandwidths{"bandwidth_file", sim.bandwidth_file, "bandwidth_mbit_s",
                            sim.bandwidth_mbit_s};
  for (const TableKey& table : {latencies, bandwidths})
    if (config.model.split.is_on() && !table.path.empty())
      return sim_error(table.key,
                       "a table has no links between the workers of a replica (split); use "
                       "sim.latency_ms and sim.bandwidth_mbit_s");
  GOSSAMER_TRY(spec.latencies, read_table(latencies, spec.peers, servers));
  GOSSAMER_TRY(spec.bandwidths, read_table(bandwidths, spec.peers, servers));
  return VirtualNetwork{gossip::NetworkModel(std::move(spec)), {}};
}

double whole_step_ms(const Setup& setup) {
  const SimOptions& sim = setup.config.sim;
  return sim.compute_ms + setup.workload->spec().samples_per_step * sim.sample_ms;
}

train::PipelineCosts pipeline_costs(const Setup& setup) {
  const SimOptions& sim = setup.config.sim;
  const WorkloadSpec& workload = setup.workload->spec();
  train::PipelineCosts costs = train::pipeline_costs(
      *workload.split, whole_step_ms(setup) / 1e3,
      static_cast<int>(std::lround(workload.samples_per_step)), sizeof(float));
  costs.latency = sim.latency_ms / 1e3;
  costs.link = bytes_per_second(sim.bandwidth_mbit_s);
  costs.uplink = bytes_per_second(sim.uplink_mbit_s);
  costs.downlink = bytes_per_second(sim.downlink_mbit_s);
  return costs;
}

int microbatches(const Setup& setup) {
  return setup.config.model.split.microbatches_of(
      static_cast<int>(std::lround(setup.workload->spec().samples_per_step)));
}

double parts_side_by_side(const Setup& setup) {
  const auto& split = setup.workload->spec().split;
  if (!split || setup.servers() > 0) return 1;
  std::size_t largest = 0;
  for (const train::ModelPart& part : split->parts()) largest = std::max(largest, part.parameters);
  return static_cast<double>(setup.parameters) / static_cast<double>(largest);
}

gossip::LinkModel link_model(const Setup& setup, int from, int to) {
  gossip::LinkModel link = setup.network.link(from, to);
  link.bytes_per_second *= parts_side_by_side(setup);
  return link;
}

gossip::NodeModel node_model(const Setup& setup, int node) {
  const SimOptions& sim = setup.config.sim;
  const double parts = parts_side_by_side(setup);
  if (setup.probed_nodes.empty())
    return {parts * bytes_per_second(sim.uplink_mbit_s),
            parts * bytes_per_second(sim.downlink_mbit_s)};
  const ProbedNode& probed = setup.probed_nodes.at(static_cast<std::size_t>(node));
  return {bytes_per_second(probed.uplink_mbit_s), bytes_per_second(probed.downlink_mbit_s)};
}

gossip::StepTimes step_times(const Setup& setup) {
  const SimOptions& sim = setup.config.sim;
  gossip::StepTimes times{gossip::from_milliseconds(setup.step_ms()), sim.slow_peers,
                          sim.slow_factor, step_spread(sim.compute_spread), setup.config.run.seed};
  for (const ProbedNode& node : setup.probed_nodes)
    times.by_peer.push_back(
        {gossip::from_milliseconds(node.step_ms), step_spread(node.step_spread)});
  return times;
}

double longest_step_ms(const Setup& setup) {
  const SimOptions& sim = setup.config.sim;
  double longest =
      setup.step_ms() * step_spread(sim.compute_spread).largest() * std::max(1.0, sim.slow_factor);
  for (const ProbedNode& node : setup.probed_nodes)
    longest = std::max(longest, node.step_ms * step_spread(node.step_spread).largest());
  return longest;
}

double least_uplink_mbit_s(const Setup& setup) {
  return setup.probed_nodes.empty() ? setup.config.sim.uplink_mbit_s
                                    : least_limit(setup.probed_nodes, &ProbedNode::uplink_mbit_s);
}

double least_downlink_mbit_s(const Setup& setup) {
  return setup.probed_nodes.empty() ? setup.config.sim.downlink_mbit_s
                                    : least_limit(setup.probed_nodes, &ProbedNode::downlink_mbit_s);
}

}  // namespace gossamer::peer
