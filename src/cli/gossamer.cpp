// The command line of the program `gossamer`.
#include "cli/gossamer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "peer/version.hpp"

namespace gossamer::cli {

namespace {

/// A file or a socket that got the number of a closed standard stream would receive what is
/// printed.
void open_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO)
    descriptor = ::open("/dev/null", O_RDWR);  // the lowest number that is free
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace

int run_gossamer(int argc, char** argv) {
  open_standard_streams();
  CLI::App app("Gossamer: decentralised training by gossip, without a server");
  app.name("gossamer");
  app.set_version_flag("--version", peer::kVersion);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 success, 1 internal error, 2 invalid flag or configuration, 3 a file cannot "
      "be read or written,\n4 peers missing after net.join_timeout, 5 a peer was lost, 6 rejected "
      "by another peer, 7 a socket of this machine\nfailed, 8 diverged, 130 interrupted.");
  int exit_code = 0;
  add_run(app, exit_code);
  add_peer(app, exit_code);
  add_launch(app, exit_code);
  add_topology(app, exit_code);
  add_predict(app, exit_code);
  add_leak(app, exit_code);
  add_model(app, exit_code);
  add_list(app, exit_code);
  add_collect(app, exit_code);
  add_watch(app, exit_code);
  add_gap(app, exit_code);
  add_average(app, exit_code);
  add_export(app, exit_code);
  add_bench(app, exit_code);
  add_keygen(app, exit_code);
  add_doctor(app, exit_code);
  add_probe(app, exit_code);
  add_completions(app, exit_code);
  add_man(app, exit_code);
  return run_program(app, argc, argv, exit_code);
}

}  // namespace gossamer::cli
