#include "cli/program.hpp"

#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

namespace gossamer::cli {
namespace {

Error cannot_write_output(int reason) {
  return {ErrorKind::data,
          fmt::format("cannot write to standard output: {}", std::strerror(reason))};
}

/// Flushes stdout. If the output could not be written, the exit code is never 0.
int flush_output(int exit_code) {
  errno = EIO;  // the reason of an earlier failed write is not available
  const bool written =
      std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
  return written || exit_code != 0 ? exit_code : print_error(cannot_write_output(errno));
}

int execute(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : static_cast<int>(ErrorKind::invalid);
    }
    return exit_code;
  } catch (const std::bad_alloc&) {
    return print_error(
        {ErrorKind::invalid,
         "out of memory: the float32 rows of the peers of this process need the most "
         "memory; run fewer peers in it, or a smaller model"});
  } catch (const std::system_error& error) {
    // fmt::print reports a failed write as a system_error.
    if (std::ferror(stdout) != 0) return print_error(cannot_write_output(error.code().value()));
    return print_error({ErrorKind::internal, fmt::format("unexpected: {}", error.what())});
  } catch (const std::exception& error) {
    return print_error({ErrorKind::internal, fmt::format("unexpected: {}", error.what())});
  }
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv, int& exit_code) {
  return flush_output(execute(app, argc, argv, exit_code));
}

void print_message(const std::string& line) {
  std::fputs(("gossamer: " + line + "\n").c_str(), stderr);
}

int print_error(const Error& error) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  std::fputs(
      fmt::format("{} {}\n", terminal ? "\033[1;31mgossamer:\033[0m" : "gossamer:", error.message)
          .c_str(),
      stderr);
  return static_cast<int>(error.kind);
}

}  // namespace gossamer::cli
