// gossamer probe CONFIG --id I: measures the network of a configuration, all processes together.
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <memory>

#include "base/id_list.hpp"
#include "cli/commands.hpp"
#include "peer/probe/probe_run.hpp"
#include "peer/runtime/network_ids.hpp"
#include "peer/runtime/progress.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct ProbeCommand {
  std::string config, id, key, out = "probe";
  std::vector<Override> overrides;
  bool quiet = false;
};

void print_tables(const ProbeTables& tables, const ProbeCommand& command) {
  const int nodes = tables.latencies_ms.regions();
  fmt::print("{:>5} {:>5} {:>12} {:>11} {:>14} {:>14}\n", "from", "to", "latency ms", "jitter ms",
             "Mbit/s there", "Mbit/s back");
  for (int from = 0; from < nodes; ++from)
    for (int to = from + 1; to < nodes; ++to)
      fmt::print("{:>5} {:>5} {:>12.4g} {:>11.4g} {:>14.4g} {:>14.4g}\n", from, to,
                 tables.latencies_ms.at(from, to), tables.jitters_ms.at(from, to),
                 tables.bandwidths_mbit_s.at(from, to), tables.bandwidths_mbit_s.at(to, from));
  fmt::print("{:>5} {:>18} {:>17} {:>17}\n", "peer", "local step ms", "Mbit/s to all",
             "Mbit/s from all");
  for (int node = 0; node < nodes; ++node) {
    const ProbedNode& probed = tables.nodes[static_cast<std::size_t>(node)];
    fmt::print("{:>5} {:>18.4g} {:>17.4g} {:>17.4g}\n", node, probed.step_ms, probed.uplink_mbit_s,
               probed.downlink_mbit_s);
  }
  fmt::print(
      "0 Mbit/s: peers of one process. The tables are in {0}; gossamer run {1} --set "
      "sim.probe={0} predicts the time of a run.\n",
      command.out, command.config.empty() ? "CONFIG" : command.config);
}

Result<int> execute(const ProbeCommand& command) {
  std::signal(SIGPIPE, SIG_IGN);
  const Environment environment = [](const char* name) { return std::getenv(name); };
  GOSSAMER_TRY(Config loaded, load_config(command.config, command.overrides));
  Config config = probe_config(std::move(loaded));
  GOSSAMER_TRY(
      NetworkIds ids,
      find_network_ids(config, {.option = command.id, .origin = "--id", .message = print_message},
                       environment));
  GOSSAMER_TRY(const Setup setup, make_network_setup(std::move(config), ids.ids, environment));
  if (!setup.device_note.empty()) print_message(setup.device_note);
  ProbeRequest request;
  request.hosted = std::move(ids.ids);
  request.listening = std::move(ids.listening);
  request.message = [&command](const std::string& line) {
    if (!command.quiet) print_message(line);
  };
  GOSSAMER_TRY(const std::optional<ProbeTables> tables, probe_network(setup, request));
  if (tables) {
    GOSSAMER_TRY_STATUS(write_probe_tables(command.out, *tables));
    if (!command.quiet) print_tables(*tables, command);
  } else if (!command.quiet) {
    fmt::print("the links of {} are measured; the process of peer 0 writes the tables\n",
               peers_text(request.hosted));
  }
  return 0;
}

}  // namespace

void add_probe(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<ProbeCommand>();
  CLI::App* probe = app.add_subcommand(
      "probe",
      "measure a network before it trains: latency, jitter and bandwidth between all peers, and "
      "the time of their local steps; start it on each machine as gossamer peer");
  probe->add_option("config", command->config, "TOML file of the run; all machines use the same");
  probe
      ->add_option("--set", command->overrides,
                   "section.key=value: override a key of the file; may be repeated")
      ->allow_extra_args(false);
  probe->add_option("--id", command->id, "id of this peer, or several, as of gossamer peer");
  probe->add_option("--key", command->key, "file of this process's private key (default: net.key)");
  probe
      ->add_option("--out", command->out,
                   "folder of the tables, which the process of peer 0 writes; sim.probe reads them")
      ->capture_default_str();
  probe->add_flag("--quiet,-q", command->quiet, "print no message and no table");
  probe->callback([command, &exit_code] {
    if (!command->key.empty()) command->overrides.push_back("net.key=" + command->key);
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
