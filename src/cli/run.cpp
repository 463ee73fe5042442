// gossamer run CONFIG: runs all peers in this process, in virtual time.
#include "peer/runtime/run.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "peer/log/summary.hpp"
#include "peer/prediction/stable_step.hpp"
#include "peer/runtime/progress.hpp"
#include "peer/runtime/start_round_agreement.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct RunCommand {
  ConfigOptions config;
  std::string resume = "none";
  bool check = false, quiet = false, json = false;
};

Result<int> execute(const RunCommand& command) {
  GOSSAMER_TRY(Config config, command.config.load());
  GOSSAMER_TRY(const Setup setup, make_setup(std::move(config)));
  if (!setup.device_note.empty()) print_message(setup.device_note);
  if (const std::string warning = stable_step_warning(setup); !warning.empty())
    print_message("warning: " + warning);
  if (command.check) {
    if (const std::string warning = agreement_warning(setup); !warning.empty())
      print_message(warning);
    if (command.json) {
      fmt::print("{}\n", text_of(size_json(setup), 2));
    } else if (!command.quiet) {
      fmt::print(stderr, "gossamer: the configuration is valid: {} peers, {}, {} parameters each\n",
                 setup.config.run.peers, setup.config.topology.kind, setup.parameters);
    }
    return 0;
  }
  // The run ends after the current round.
  const auto is_interrupted = catch_interrupts();

  Progress progress(setup.config.run.rounds, command.quiet);
  RunRequest request;
  request.folder = run_folder(setup.config);
  request.interrupted = is_interrupted;
  request.resume = resume_choice(command.resume);
  request.message = [&progress](const std::string& line) {
    progress.end();
    print_message(line);
  };
  request.on_progress = [&progress](const Json& record) { progress.show(record); };
  const std::filesystem::path folder = request.folder;
  GOSSAMER_TRY(const RunOutcome outcome, run(setup, std::move(request)));
  progress.end();
  if (command.json) fmt::print("{}\n", text_of(outcome.summary, 2));
  else if (!command.quiet)
    fmt::print("{}  {:<24}{}\n", summary_text(outcome.summary), "run folder", folder.string());
  return outcome.stopped ? print_error(*outcome.stopped) : 0;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<RunCommand>();
  CLI::App* run = app.add_subcommand("run", "run all peers in this process, in virtual time");
  command->config.add_to(*run);
  add_resume(*run, command->resume);
  run->add_flag("--check", command->check, "check the configuration and exit");
  run->add_flag("--quiet,-q", command->quiet, "print no progress and no summary");
  run->add_flag("--json", command->json,
                "print summary.json; with --check: the numbers of peers, servers and parameters");
  run->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
