#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include "peer/commands/commands.hpp"

namespace gossamer::peer {

void say(const std::string& line) { std::fputs(("gossamer: " + line + "\n").c_str(), stderr); }

int report(const Error& error) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  std::fputs(fmt::format("{} {}\n", terminal ? "\033[1;31mgossamer:\033[0m" : "gossamer:", error.message).c_str(), stderr);
  return static_cast<int>(error.kind);
}

void ConfigOptions::add_to(CLI::App& command) {
  command.add_option("config", path, "the run's TOML file; without one, the defaults");
  command.add_option("--set", overrides, "section.key=value: overrides a key of the file; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--out", out, "run folder (local.out; runs/<run id> where neither is given)");
}

void add_resume(CLI::App& command, std::string& resume) {
  command.add_option("--resume", resume,
                     "where to begin: none (at round 0, the default), auto (at the newest valid checkpoint in checkpoint.folder, or at "
                     "round 0 where there is none), or a checkpoint's .json file or a folder of them");
}

Result<Config> ConfigOptions::load() const {
  std::vector<Override> all = overrides;
  if (!out.empty()) all.push_back("local.out=" + out);
  return load_config(path, all);
}

}  // namespace gossamer::peer
