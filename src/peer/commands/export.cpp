// gossamer export DIR --csv: a run's log as a table, one row per peer and logged round.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "peer/commands/commands.hpp"
#include "peer/run_files.hpp"

namespace gossamer::peer {
namespace {

constexpr const char* kRoundColumns[] = {"round",         "peer",          "seconds",    "train_loss",
                                         "test_loss",     "test_accuracy", "bytes_sent", "bytes_received",
                                         "train_seconds", "wait_seconds",  "mix_seconds"};
constexpr const char* kNetworkColumns[] = {"consensus_distance", "averaged_loss", "averaged_accuracy",
                                           "distance_to_optimum"};

std::string cell(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found == record.end() || found->is_null() ? std::string() : found->dump();
}

Status print_csv(const std::string& folder) {
  GOSSAMER_TRY(const std::vector<ProcessLog> logs, read_logs(folder));
  std::map<std::uint64_t, const Json*> networks;
  std::vector<const Json*> rounds;
  try {
    for (const ProcessLog& log : logs)
      for (const Json& record : log.records) {
        if (record["record"] == "round") rounds.push_back(&record);
        if (record["record"] == "network") networks[record["round"].get<std::uint64_t>()] = &record;
      }
    std::stable_sort(rounds.begin(), rounds.end(), [](const Json* a, const Json* b) {
      return std::pair((*a)["round"].get<std::uint64_t>(), (*a)["peer"].get<int>()) <
             std::pair((*b)["round"].get<std::uint64_t>(), (*b)["peer"].get<int>());
    });
    std::string line;
    for (const char* name : kRoundColumns) line += (line.empty() ? "" : ",") + std::string(name);
    for (const char* name : kNetworkColumns) line += "," + std::string(name);
    fmt::print("{}\n", line);
    for (const Json* record : rounds) {
      line.clear();
      for (const char* name : kRoundColumns) line += (name == kRoundColumns[0] ? "" : ",") + cell(*record, name);
      const auto network = networks.find((*record)["round"].get<std::uint64_t>());
      for (const char* name : kNetworkColumns)
        line += "," + (network == networks.end() ? std::string() : cell(*network->second, name));
      fmt::print("{}\n", line);
    }
  } catch (const Json::exception& error) {
    return Error{ErrorKind::data, fmt::format("{}: a log is not what this version writes: {}", folder, error.what())};
  }
  return {};
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto folder = std::make_shared<std::string>();
  auto csv = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("export", "print a run's log as a table: a row per peer and logged round");
  command->add_option("folder", *folder, "the run folder")->required();
  command->add_flag("--csv", *csv, "comma-separated values (the only form there is)")->required();
  command->callback([folder, &exit_code] {
    const Status status = print_csv(*folder);
    exit_code = status.ok() ? 0 : report(status.error());
  });
}

}  // namespace gossamer::peer
