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

/// Output that could not be written is no success, whatever the command returned.
int flushed(int exit_code) {
  errno = EIO;  // where an earlier write failed, its reason is no longer known
  const bool written =
      std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
  return written || exit_code != 0 ? exit_code : report(cannot_write_output(errno));
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
    return report({ErrorKind::invalid,
                   "out of memory; rows of float32 for every peer of this process are what is "
                   "large: run fewer peers here, or a smaller model"});
  } catch (const std::system_error& error) {
    // fmt::print reports a failed write as a system_error.
    if (std::ferror(stdout) != 0) return report(cannot_write_output(error.code().value()));
    return report({ErrorKind::internal, fmt::format("unexpected: {}", error.what())});
  } catch (const std::exception& error) {
    return report({ErrorKind::internal, fmt::format("unexpected: {}", error.what())});
  }
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv, int& exit_code) {
  return flushed(execute(app, argc, argv, exit_code));
}

void say(const std::string& line) { std::fputs(("gossamer: " + line + "\n").c_str(), stderr); }

int report(const Error& error) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  std::fputs(
      fmt::format("{} {}\n", terminal ? "\033[1;31mgossamer:\033[0m" : "gossamer:", error.message)
          .c_str(),
      stderr);
  return static_cast<int>(error.kind);
}

}  // namespace gossamer::cli
