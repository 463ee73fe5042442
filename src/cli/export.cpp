// gossamer export DIR --csv: prints the logs of a run as a table, with one row per node and logged
// round.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands.hpp"
#include "peer/log/log_records.hpp"
#include "peer/log/run_files.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

constexpr const char* kNodeColumns[] = {"round",         "peer",         "server",
                                        "seconds",       "train_loss",   "test_loss",
                                        "test_accuracy", "bytes_sent",   "bytes_received",
                                        "train_seconds", "wait_seconds", "mix_seconds"};
constexpr const char* kNetworkColumns[] = {
    "consensus_distance",           "averaged_loss",   "averaged_accuracy", "distance_to_optimum",
    "averaged_distance_to_optimum", "backdoor_success"};

std::string cell(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found == record.end() || found->is_null() ? std::string() : found->dump();
}

std::uint64_t round_of(const Json& record) { return record.at("round").get<std::uint64_t>(); }
int node_of(const Json& record) {
  return record.at(record_type(record) == "server" ? "server" : "peer").get<int>();
}

Status print_csv(const std::string& folder) {
  GOSSAMER_TRY(const std::vector<ProcessLog> logs, read_logs(folder, print_message));
  std::map<std::uint64_t, const Json*> networks;
  std::vector<const Json*> nodes;
  for (const ProcessLog& log : logs)
    for (const Json& record : log.records) {
      if (record_type(record) == "round" || record_type(record) == "server")
        nodes.push_back(&record);
      if (record_type(record) == "network") networks[round_of(record)] = &record;
    }
  std::stable_sort(nodes.begin(), nodes.end(), [](const Json* a, const Json* b) {
    return std::pair(round_of(*a), node_of(*a)) < std::pair(round_of(*b), node_of(*b));
  });
  fmt::print("{},{}\n", fmt::join(kNodeColumns, ","), fmt::join(kNetworkColumns, ","));
  for (const Json* record : nodes) {
    std::vector<std::string> cells;
    for (const char* name : kNodeColumns) cells.push_back(cell(*record, name));
    const auto network = networks.find(round_of(*record));
    for (const char* name : kNetworkColumns)
      cells.push_back(network == networks.end() ? std::string() : cell(*network->second, name));
    fmt::print("{}\n", fmt::join(cells, ","));
  }
  return {};
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto folder = std::make_shared<std::string>();
  auto csv = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "export",
      "print the logs of a run as a table with one row per peer or server and logged round");
  command->add_option("folder", *folder, "the run folder")->required();
  command->add_flag("--csv", *csv, "as comma-separated values (the only format)")->required();
  command->callback([folder, &exit_code] {
    const Status status = print_csv(*folder);
    exit_code = status.ok() ? 0 : print_error(status.error());
  });
}

}  // namespace gossamer::cli
