// The program's commands, one file each. Each adds itself to the command line and leaves its exit
// code in `exit_code` when it is the one that was asked for. stdout is data, stderr is messages.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/program.hpp"
#include "peer/config/config.hpp"

namespace gossamer::cli {

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
void add_doctor(CLI::App& app, int& exit_code);

/// Options that every command with a configuration takes.
struct ConfigOptions {
  std::string path;
  std::vector<peer::Override> overrides;
  std::string out;

  void add_to(CLI::App& command);
  Result<peer::Config> load() const;
};

/// --resume, which says where a run begins (peer/checkpoint/resume.hpp).
void add_resume(CLI::App& command, std::string& resume);

}  // namespace gossamer::cli
