// The program's commands, one file each. Each adds itself to the command line and leaves its exit code in `exit_code` when
// it is the one that was asked for. stdout is data, stderr is messages.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/config.hpp"

namespace gossamer::peer {

void add_run(CLI::App& app, int& exit_code);
void add_peer(CLI::App& app, int& exit_code);
void add_topology(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_collect(CLI::App& app, int& exit_code);
void add_gap(CLI::App& app, int& exit_code);
void add_average(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);

/// Prints a line for people, if stderr takes it: what stderr has no room for ends nothing.
void say(const std::string& line);

/// Prints the error for people and returns its exit code.
int report(const Error& error);

/// Options that every command with a configuration takes.
struct ConfigOptions {
  std::string path;
  std::vector<Override> overrides;
  std::string out;

  void add_to(CLI::App& command);
  Result<Config> load() const;
};

/// --resume, which says where a run begins (peer/resume.hpp).
void add_resume(CLI::App& command, std::string& resume);

}  // namespace gossamer::peer
