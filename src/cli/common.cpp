#include "cli/commands.hpp"

namespace gossamer::cli {

void ConfigOptions::add_to(CLI::App& command) {
  command.add_option("config", path, "the run's TOML file; without one, the defaults");
  command
      .add_option("--set", overrides,
                  "section.key=value: overrides a key of the file; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--out", out, "run folder (local.out; runs/<run id> where neither is given)");
}

void add_resume(CLI::App& command, std::string& resume) {
  command.add_option(
      "--resume", resume,
      "where to begin: none (at round 0, the default), auto (at the newest valid checkpoint in "
      "checkpoint.folder, or at "
      "round 0 where there is none), or a checkpoint's .json file or a folder of them");
}

Result<peer::Config> ConfigOptions::load() const {
  std::vector<peer::Override> all = overrides;
  if (!out.empty()) all.push_back("local.out=" + out);
  return peer::load_config(path, all);
}

}  // namespace gossamer::cli
