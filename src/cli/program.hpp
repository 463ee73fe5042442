// Common to all programs of the project: parsing the command line, reporting errors as a sentence
// on stderr and an exit code, and checking that the output was written.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.hpp"

namespace gossamer::cli {

/// Parses the command line with `app` and runs the command. Callbacks of `app` set `exit_code`.
/// Returns the exit code of the process.
int run_program(CLI::App& app, int argc, char** argv, int& exit_code);

/// Prints a message on stderr. Errors of stderr are ignored.
void print_message(const std::string& line);

/// Prints the error on stderr and returns its exit code.
int print_error(const Error& error);

}  // namespace gossamer::cli
