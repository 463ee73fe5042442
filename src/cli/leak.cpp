// gossamer leak CONFIG: what peers can learn of each other's samples from the rows of a run.
#include "peer/leak/leak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/id_list.hpp"
#include "cli/commands.hpp"
#include "peer/runtime/run.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

/// Without --observers: at most this number of peers, evenly spaced, observe separately.
constexpr int kMostAlone = 16;
constexpr std::uint64_t kRounds = 10;

struct LeakCommand {
  ConfigOptions config;
  std::optional<std::uint64_t> rounds;
  std::string observers;
  double similarity = 0;
  int inversion = 0;
  bool predict = false, json = false, quiet = false;
};

Result<std::vector<std::vector<int>>> groups_of(const LeakCommand& command, int peers) {
  std::vector<std::vector<int>> groups;
  if (!command.observers.empty()) {
    GOSSAMER_TRY(std::vector<int> group, parse_ids(command.observers, "--observers"));
    groups.push_back(std::move(group));
    return groups;
  }
  const int alone = std::min(peers, kMostAlone);
  for (int k = 0; k < alone; ++k)
    groups.push_back({static_cast<int>(std::int64_t{k} * peers / alone)});
  return groups;
}

Result<int> execute(const LeakCommand& command) {
  GOSSAMER_TRY(Config config, command.config.load());
  if (command.predict) config.local.device = "cpu";
  LeakRequest request;
  request.rounds = command.rounds.value_or(std::min(kRounds, config.run.rounds));
  request.similarity = command.similarity;
  request.trains = !command.predict;
  request.inversion = command.inversion;
  request.interrupted = catch_interrupts();
  GOSSAMER_TRY(request.observers, groups_of(command, config.run.peers));
  const std::filesystem::path folder = run_folder(config) / "leak";
  GOSSAMER_TRY(const Leak leaked, leak(std::move(config), request));
  if (request.trains) GOSSAMER_TRY_STATUS(write_leak(folder, request, leaked));
  if (command.json) fmt::print("{}\n", text_of(leak_json(request, leaked), 2));
  else if (!command.quiet) fmt::print("{}", leak_text(request, leaked));
  if (request.trains && !command.json && !command.quiet)
    fmt::print("\n{:<12}{}\n", "folder", folder.string());
  return 0;
}

}  // namespace

void add_leak(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<LeakCommand>();
  CLI::App* leak = app.add_subcommand(
      "leak", "attack the messages of a run: what peers learn of each other's updates and samples");
  command->config.add_to(*leak);
  leak->add_option(
      "--rounds", command->rounds,
      "rounds that are observed, from the first; default: 10, or run.rounds if that is "
      "less");
  leak->add_option("--observers", command->observers,
                   "peers that put together what they know, such as 0,3 or 0-3; default: each peer "
                   "for itself, of more than 16 peers 16 evenly spaced ones");
  leak->add_option("--similarity", command->similarity,
                   "correlation of a peer's updates in two rounds that the estimates assume, at "
                   "least 0 and below 1")
      ->capture_default_str();
  leak->add_option("--invert", command->inversion,
                   "iterations that look for the samples of each peer's first batch by inverting "
                   "its gradient, such as 1000; 0: none")
      ->capture_default_str();
  leak->add_flag(
      "--predict", command->predict,
      "train nothing, and only say what part of each update could be reconstructed, from rows "
      "without a codec's errors");
  leak->add_flag("--json", command->json, "print leak.json, which also has every pair");
  leak->add_flag("--quiet,-q", command->quiet, "print no table");
  leak->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
