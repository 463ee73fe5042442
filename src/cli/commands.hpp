// The commands of the program, one file each. Each function adds its command to the command line.
// When the command runs, it sets `exit_code`. Data goes to stdout and messages go to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/program.hpp"
#include "peer/config/config.hpp"

namespace gossamer::cli {

void add_run(CLI::App& app, int& exit_code);
void add_peer(CLI::App& app, int& exit_code);
void add_launch(CLI::App& app, int& exit_code);
void add_topology(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app, int& exit_code);
void add_leak(CLI::App& app, int& exit_code);
void add_model(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_collect(CLI::App& app, int& exit_code);
void add_watch(CLI::App& app, int& exit_code);
void add_gap(CLI::App& app, int& exit_code);
void add_average(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_keygen(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_probe(CLI::App& app, int& exit_code);
void add_completions(CLI::App& app, int& exit_code);
void add_man(CLI::App& app, int& exit_code);

/// The options of every command that takes a configuration.
struct ConfigOptions {
  std::string path;
  std::vector<peer::Override> overrides;
  std::string out;

  void add_to(CLI::App& command);
  Result<peer::Config> load() const;
};

/// From now on the first SIGINT, SIGTERM or SIGHUP does not end the process; another one of the
/// same kind does. A SIGHUP that the process was started to ignore (nohup) stays ignored. Returns a
/// function that says whether one has come.
std::function<bool()> catch_interrupts();

/// Checks that the text of an option is an integer that is not negative, and below 2^64.
CLI::Validator whole_number();

/// Checks that the name of a file to draw to ends in .svg, or has no suffix.
CLI::Validator svg_file();

/// Adds --resume, which sets where a run starts (peer/checkpoint/resume.hpp).
void add_resume(CLI::App& command, std::string& resume);

}  // namespace gossamer::cli
