#include "peer/runtime/virtual_network.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

constexpr std::uintmax_t kMostTableBytes = std::uintmax_t{1}
                                           << 32;  // of a table; one of 16,384 regions has fewer

Error invalid(const std::string& key, const std::string& what) {
  return {ErrorKind::invalid, fmt::format("sim.{}: {}", key, what)};
}

/// What `key` says: a table stands instead of a value for all.
struct TableKey {
  std::string key, path;
  std::string other;  ///< the key of the value for all
  double value;
};

Result<std::optional<gossip::LinkTable>> read_table(const TableKey& given, int peers, int servers) {
  if (given.path.empty()) return std::optional<gossip::LinkTable>();
  if (given.value != 0)
    return invalid(
        given.key,
        fmt::format("the table stands instead of sim.{}; leave one of them out", given.other));
  const auto named = [&given](const Error& error) {
    return Error{error.kind, fmt::format("sim.{}: {}", given.key, error.message)};
  };
  const auto text = read_file(given.path, kMostTableBytes);
  if (!text.ok()) return named(text.error());
  auto table = gossip::LinkTable::parse(*text, given.path);
  if (!table.ok()) return named(table.error());
  if (const int regions = table->regions(); regions > peers && regions != peers + servers)
    return invalid(
        given.key,
        fmt::format("{} has {} regions for {} peers{}; a table has one for each, or fewer",
                    given.path, regions, peers,
                    servers > 0 ? fmt::format(" and {} servers", servers) : ""));
  return std::optional(std::move(table).value());
}

Status check_width(const std::string& key, const gossip::Spread& spread) {
  if (spread.form != gossip::Spread::Form::uniform || spread.width < 1) return {};
  return invalid(key, fmt::format("uniform factors between 1 - {0} and 1 + {0} reach 0; a width "
                                  "below 1, or sim.spread = log_normal",
                                  spread.width));
}

}  // namespace

Result<gossip::NetworkModel> virtual_network(const Config& config, int servers) {
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
