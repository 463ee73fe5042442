#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <filesystem>

#include "base/signals.hpp"
#include "cli/commands.hpp"

namespace gossamer::cli {
namespace {

volatile std::sig_atomic_t interrupts = 0;

void count_interrupt(int signal) {
  interrupts = interrupts + 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void ConfigOptions::add_to(CLI::App& command) {
  command.add_option("config", path, "TOML file of the run; if omitted, the defaults are used");
  command
      .add_option("--set", overrides,
                  "section.key=value: override a key of the file; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--out", out, "run folder (default: local.out, or runs/<run id>)");
}

CLI::Validator whole_number() {
  const auto check = [](const std::string& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return std::string();
    return error == std::errc::result_out_of_range
               ? fmt::format("'{}' is too large", text)
               : fmt::format("'{}' is not an integer of 0 or more, written in digits", text);
  };
  return CLI::Validator(check, "");
}

CLI::Validator svg_file() {
  const auto check = [](const std::string& name) {
    constexpr std::array kOthers{".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp",
                                 ".eps", ".ps",  ".tif", ".tiff", ".bmp", ".html"};
    const std::string suffix = std::filesystem::path(name).extension().string();
    std::string lower = suffix;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (std::ranges::find(kOthers, lower) == kOthers.end()) return std::string();
    return fmt::format("{}: drawings are SVG, and not '{}': end the file's name in .svg", name,
                       suffix);
  };
  return CLI::Validator(check, "");
}

void add_resume(CLI::App& command, std::string& resume) {
  command.add_option(
      "--resume", resume,
      "where to start: none (at round 0, the default), auto (at the newest valid checkpoint in "
      "checkpoint.folder, or at round 0 if there is none), the .json file of a checkpoint, or a "
      "folder of checkpoints");
}

std::function<bool()> catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, count_interrupt);
  if (!is_ignored(SIGHUP)) std::signal(SIGHUP, count_interrupt);
  return [] { return interrupts > 0; };
}

Result<peer::Config> ConfigOptions::load() const {
  std::vector<peer::Override> all = overrides;
  if (!out.empty()) all.push_back("local.out=" + out);
  return peer::load_config(path, all);
}

}  // namespace gossamer::cli
