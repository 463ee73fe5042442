// gossamer gap RUN: the spectral gap that a run's mixing really had.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "peer/prediction/run_gap.hpp"

namespace gossamer::cli {

using namespace peer;

void add_gap(CLI::App& app, int& exit_code) {
  auto folder = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<Override>>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "gap", "the spectral gap that a run realised, missing and late rows included");
  command->add_option("folder", *folder, "the run folder, or one that holds a folder per process")
      ->required();
  command
      ->add_option("--set", *overrides,
                   "section.key=value: where this machine has the topology's file; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--json", *json, "one JSON object");
  command->callback([folder, overrides, json, &exit_code] {
    auto gap = gap_of_run(*folder, *overrides);
    exit_code = gap.ok() ? 0 : report(gap.error());
    if (gap.ok()) fmt::print("{}", *json ? text_of(gap_json(*gap)) + "\n" : gap_text(*gap));
  });
}

}  // namespace gossamer::cli
