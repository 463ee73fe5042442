#include "peer/setup/virtual_network.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

// A table of 16,384 regions is smaller.
constexpr std::uintmax_t kMaxTableBytes = std::uintmax_t{1} << 32;

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
  const auto text = read_file(table_key.path, kMaxTableBytes);
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

}  // namespace

Result<gossip::NetworkModel> make_network_model(const Config& config, int servers) {
  const SimOptions& sim = config.sim;
  const auto form =
      sim.spread == "uniform" ? gossip::Spread::Form::uniform : gossip::Spread::Form::log_normal;
  gossip::NetworkSpec spec;
  spec.peers = config.run.peers;
  spec.servers = servers;
  spec.seed = config.run.seed;
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
  GOSSAMER_TRY(spec.latencies, read_table(latencies, spec.peers, servers));
  GOSSAMER_TRY(spec.bandwidths, read_table(bandwidths, spec.peers, servers));
  return gossip::NetworkModel(std::move(spec));
}

}  // namespace gossamer::peer
