#include "cli/program.hpp"

#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/descriptor.hpp"
#include "base/printable.hpp"
#include "base/suggestion.hpp"

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

/// The commands of `app`, or the options of one of its commands.
std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What to do about the error of the arguments: the first name that is none, with a suggestion, or
/// the error with where to look.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::string first = argc < 2 ? "" : argv[1];
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto command = std::ranges::find(commands, first, &CLI::App::get_name);
  const bool has_command = command != commands.end();
  if (!commands.empty() && !first.empty() && !first.starts_with("-") && !has_command)
    return fmt::format("there is no command '{}'{}", first, known_names(first, names_of(app)));
  const auto is = [&error](CLI::ExitCodes code) {
    return error.get_exit_code() == static_cast<int>(code);
  };
  const std::vector<std::string> known =
      names_of(has_command ? static_cast<const CLI::App&>(**command) : app);
  // A name that is no option can leave a required argument missing.
  const bool about_names = is(CLI::ExitCodes::ExtrasError) || is(CLI::ExitCodes::RequiredError);
  for (int i = has_command ? 2 : 1; about_names && i < argc; ++i) {
    const std::string given = argv[i];
    const std::string option = given.substr(0, given.find('='));
    if (given == "--") break;
    if (!option.starts_with("--") || std::ranges::find(known, option) != known.end()) continue;
    return fmt::format("there is no option '{}'{}", option, known_names(option, known));
  }
  return fmt::format("{}; `{}{} --help` lists the {}", error.what(), app.get_name(),
                     has_command ? " " + first : "",
                     has_command || commands.empty() ? "arguments and options" : "commands");
}

int execute(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& success) {  // --help, --version
      return app.exit(success);
    } catch (const CLI::ParseError& error) {
      return print_error(invalid_error(explain(app, error, argc, argv)));
    }
    return exit_code;
  } catch (const std::filesystem::filesystem_error& error) {
    std::error_code lost;
    const std::filesystem::path folder = std::filesystem::current_path(lost);
    return print_error(
        {ErrorKind::data,
         fmt::format("{}: {}", folder.empty() ? "the working folder" : error.path1().string(),
                     error.code().message())});
  } catch (const std::bad_alloc&) {
    return print_error(
        {ErrorKind::invalid,
         "out of memory: the rows of the peers of this process and, in a step, the outputs of the "
         "model's operations need the most; run fewer peers in it, a smaller batch or a smaller "
         "model"});
  } catch (const std::system_error& error) {
    // fmt::print reports a failed write as a system_error.
    if (std::ferror(stdout) != 0) return print_error(cannot_write_output(error.code().value()));
    // Asio's category of the system's errors is one of its own.
    const std::string_view category = error.code().category().name();
    const bool full =
        error.code().value() == EMFILE && (category == "generic" || category.ends_with("system"));
    return print_error(
        {ErrorKind::internal, fmt::format("unexpected: {}{}{}", error.what(), full ? "; " : "",
                                          full ? kRaiseOpenFiles : "")});
  } catch (const std::exception& error) {
    return print_error({ErrorKind::internal, fmt::format("unexpected: {}", error.what())});
  }
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv, int& exit_code) {
  return flush_output(execute(app, argc, argv, exit_code));
}

void print_message(const std::string& line) {
  std::fputs(("gossamer: " + printable(abridged(line)) + "\n").c_str(), stderr);
}

int print_error(const Error& error) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  std::fputs(fmt::format("{} {}\n", terminal ? "\033[1;31mgossamer:\033[0m" : "gossamer:",
                         printable(abridged(error.message)))
                 .c_str(),
             stderr);
  return static_cast<int>(error.kind);
}

}  // namespace gossamer::cli
