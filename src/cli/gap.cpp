// gossamer gap RUN: computes the spectral gap that the mixing of a run realised.
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
      "gap", "compute the spectral gap that a run realised, with missing and stale rows");
  command
      ->add_option("folder", *folder, "the run folder, or a folder with one subfolder per process")
      ->required();
  command
      ->add_option("--set", *overrides,
                   "section.key=value: override the place of the topology's file on this machine "
                   "(topology.path); may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--json", *json, "print one JSON object");
  command->callback([folder, overrides, json, &exit_code] {
    auto gap = gap_of_run(*folder, *overrides);
    exit_code = gap.ok() ? 0 : print_error(gap.error());
    if (gap.ok()) fmt::print("{}", *json ? text_of(gap_json(*gap)) + "\n" : gap_text(*gap));
  });
}

}  // namespace gossamer::cli
