// The program `gossamer`: composes its commands. Everything else receives what it needs.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "peer/commands/commands.hpp"
#include "peer/version.hpp"

namespace {

using namespace gossamer::peer;

gossamer::Error cannot_write_output(int reason) {
  return {gossamer::ErrorKind::data, fmt::format("cannot write to standard output: {}", std::strerror(reason))};
}

/// What was printed is out, or the exit code says that it is not: data that nobody got is no success.
int flushed(int exit_code) {
  errno = EIO;  // where an earlier write failed, its reason is no longer known
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
  return written || exit_code != 0 ? exit_code : report(cannot_write_output(errno));
}

/// Reads the command line and does what it says; the exit code.
int execute(int argc, char** argv) {
  try {
    CLI::App app("Gossamer: decentralised training by gossip, without a server");
    app.name("gossamer");
    app.set_version_flag("--version", kVersion);
    app.require_subcommand(1);
    app.footer(
        "Exit codes: 0 done, 1 internal error, 2 bad flag or configuration, 3 a file cannot be read or written, 4 peers\n"
        "missing at net.join_timeout, 5 a peer was lost, 6 refused by another peer, 7 this machine's sockets, 8 diverged,\n"
        "130 interrupted.");
    int exit_code = 0;
    add_run(app, exit_code);
    add_peer(app, exit_code);
    add_topology(app, exit_code);
    add_predict(app, exit_code);
    add_list(app, exit_code);
    add_collect(app, exit_code);
    add_gap(app, exit_code);
    add_average(app, exit_code);
    add_export(app, exit_code);
    add_bench(app, exit_code);
    add_simulate(app, exit_code);
    add_doctor(app, exit_code);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      const int code = app.exit(error);
      return code == 0 ? 0 : static_cast<int>(gossamer::ErrorKind::invalid);
    }
    return exit_code;
  } catch (const std::bad_alloc&) {
    return report(
        {gossamer::ErrorKind::invalid,
         "out of memory; rows of float32 for every peer of this process are what is large: run fewer peers here, or a "
         "smaller model"});
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return report(cannot_write_output(error.code().value()));  // fmt::print's way to say so
    return report({gossamer::ErrorKind::internal, fmt::format("unexpected: {}", error.what())});
  } catch (const std::exception& error) {
    return report({gossamer::ErrorKind::internal, fmt::format("unexpected: {}", error.what())});
  }
}

}  // namespace

int main(int argc, char** argv) { return flushed(execute(argc, argv)); }
