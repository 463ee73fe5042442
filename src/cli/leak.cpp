// gossamer leak CONFIG: what peers can learn of each other's samples from the rows of a run.
#include "peer/leak/leak.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/id_list.hpp"
#include "cli/commands.hpp"
#include "peer/runtime/run.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct LeakCommand {
  ConfigOptions config;
  std::uint64_t rounds = 10;
  std::string observers;
  std::optional<double> similarity;
  bool predict = false, json = false, quiet = false;
};

Result<int> execute(const LeakCommand& command) {
  GOSSAMER_TRY(Config config, command.config.load());
  config.local.device = command.predict ? "cpu" : config.local.device;
  LeakRequest request;
  request.rounds = std::min(command.rounds, config.run.rounds);
  request.similarity = command.similarity;
  request.trains = !command.predict;
  if (command.observers.empty()) {
    for (int peer = 0; peer < config.run.peers; ++peer) request.observers.push_back({peer});
  } else {
    GOSSAMER_TRY(std::vector<int> group, parse_ids(command.observers, "--observers"));
    request.observers.push_back(std::move(group));
  }
  const std::filesystem::path folder = run_folder(config) / "leak";
  request.folder = folder / "run";
  GOSSAMER_TRY(const Leak leaked, leak(std::move(config), request));
  const std::string json = text_of(leak_json(request, leaked), 2) + "\n";
  if (request.trains) {
    GOSSAMER_TRY_STATUS(write_file(folder / "leak.json", json));
    if (!leaked.shown.empty())
      GOSSAMER_TRY_STATUS(write_shown_samples(folder / "samples.safetensors", leaked));
  }
  if (command.json) fmt::print("{}", json);
  else if (!command.quiet) fmt::print("{}", leak_text(request, leaked));
  if (request.trains && !command.json && !command.quiet)
    fmt::print("\nfolder        {}\n", folder.string());
  return 0;
}

}  // namespace

void add_leak(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<LeakCommand>();
  CLI::App* leak = app.add_subcommand(
      "leak", "attack the messages of a run: what peers learn of each other's updates and samples");
  command->config.add_to(*leak);
  leak->add_option("--rounds", command->rounds, "rounds that are observed, from the first")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  leak->add_option("--observers", command->observers,
                   "peers that put together what they know, such as 0,3 or 0-3; default: each peer "
                   "for itself");
  leak->add_option("--similarity", command->similarity,
                   "correlation of a peer's updates in two rounds, for the estimates; default: "
                   "measured on the observers' own updates, and 0 with --predict")
      ->check(CLI::Range(0.0, 0.999));
  leak->add_flag("--predict", command->predict,
                 "train nothing, and only say what part of each update could be reconstructed");
  leak->add_flag("--json", command->json, "print leak.json, which also has every pair");
  leak->add_flag("--quiet,-q", command->quiet, "print no table");
  leak->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
