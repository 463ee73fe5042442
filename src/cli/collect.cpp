// gossamer collect DIR: computes the summary of a networked run.
#include "peer/log/collect.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "peer/log/summary.hpp"
#include "peer/replica/whole_checkpoint.hpp"

namespace gossamer::cli {

using namespace peer;

void add_collect(CLI::App& app, int& exit_code) {
  auto folder = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<Override>>();
  auto json = std::make_shared<bool>(false), survivors = std::make_shared<bool>(false),
       checkpoint = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "collect", "compute the summary of a networked run from the files of its processes");
  command
      ->add_option("folder", *folder, "the run folder, or a folder with one subfolder per process")
      ->required();
  command
      ->add_option("--set", *overrides,
                   "section.key=value: override the place of files on this machine (data.path, "
                   "checkpoint.folder) or its number of threads (local.threads); may be repeated")
      ->allow_extra_args(false);
  CLI::Option* const only_survivors =
      command->add_flag("--survivors", *survivors, "leave out peers that the network lost");
  CLI::Option* const as_json = command->add_flag("--json", *json, "print summary.json");
  command
      ->add_flag("--checkpoint", *checkpoint,
                 "instead of a summary, put the newest checkpoint of all workers of cut models "
                 "together, as one of whole models in FOLDER/checkpoints; prints its path")
      ->excludes(only_survivors, as_json);
  command->callback([folder, overrides, json, survivors, checkpoint, &exit_code] {
    if (*checkpoint) {
      const auto written = collect_checkpoint(
          *folder, *overrides, [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
      exit_code = written.ok() ? 0 : print_error(written.error());
      if (written.ok()) fmt::print("{}\n", written->string());
      return;
    }
    const auto summary = collect(*folder, *overrides, *survivors);
    if (!summary.ok()) {
      exit_code = print_error(summary.error());
      return;
    }
    const std::string text = text_of(*summary, 2) + "\n";
    fmt::print("{}", *json ? text : summary_text(*summary));
    // The results are printed also where the folder is another user's.
    const Status written = write_file(std::filesystem::path(*folder) / "summary.json", text);
    exit_code = written.ok() ? 0 : print_error(written.error());
  });
}

}  // namespace gossamer::cli
