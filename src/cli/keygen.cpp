// gossamer keygen FILE: makes the key of a process, and prints its public half.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "net/tls/keys.hpp"

namespace gossamer::cli {
namespace {

Status generate_or_show(const std::string& path, bool show) {
  std::string key;
  if (show) {
    GOSSAMER_TRY(const net::KeyPair pair, net::KeyPair::load(path));
    key = to_string(pair.public_key());
  } else {
    const net::KeyPair pair = net::KeyPair::generate();
    GOSSAMER_TRY_STATUS(pair.save(path));
    key = to_string(pair.public_key());
  }
  fmt::print("{}\n", key);
  fmt::print("in net.peers of every process:  {{address = \"HOST:PORT\", key = \"{}\"}}\n", key);
  fmt::print("in [net] of this process:       key = \"{}\"\n", path);
  return {};
}

}  // namespace

void add_keygen(CLI::App& app, int& exit_code) {
  auto path = std::make_shared<std::string>();
  auto show = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "keygen", "make the private key of a process, and print its public key for the others");
  command->add_option("file", *path, "the file of the private key; an existing file is an error")
      ->required();
  command->add_flag("--show", *show, "print the public key of an existing file");
  command->callback([path, show, &exit_code] {
    const Status status = generate_or_show(*path, *show);
    exit_code = status.ok() ? 0 : print_error(status.error());
  });
}

}  // namespace gossamer::cli
