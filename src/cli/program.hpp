// What every program of the project does around its commands: reads the command line, turns faults
// into a sentence on stderr and an exit code, and makes sure that the output was written.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.hpp"

namespace gossamer::cli {

/// Parses the command line with `app` and runs what it asks for. Callbacks of `app` leave their
/// exit code in `exit_code`. Returns the exit code of the process.
int run_program(CLI::App& app, int argc, char** argv, int& exit_code);

/// Prints a line for people on stderr; a full or closed stderr is ignored.
void say(const std::string& line);

/// Prints the error for people and returns its exit code.
int report(const Error& error);

}  // namespace gossamer::cli
