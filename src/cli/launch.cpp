// gossamer launch HOSTS CONFIG: runs a network on machines that ssh reaches.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/printable.hpp"
#include "base/temporary_folder.hpp"
#include "cli/commands.hpp"
#include "net/io/address.hpp"
#include "peer/launch/launch_plan.hpp"
#include "peer/launch/launched_processes.hpp"
#include "peer/setup/credentials.hpp"
#include "peer/setup/hosted_ids.hpp"

namespace gossamer::cli {

using namespace peer;
namespace fs = std::filesystem;
namespace {

/// Asks nothing, gives up a machine that does not answer, and notices one that is gone.
constexpr const char* kSsh = "ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15";
constexpr int kOfSsh = 255;  // its exit code where it cannot connect, or loses the connection

struct LaunchCommand {
  std::string hosts;
  ConfigOptions config;
  std::string key, resume = "none", ssh = kSsh, program, directory;
  int port = 7000;
  bool quiet = false;

  /// Of the command `peer`.
  std::vector<std::string> arguments() const {
    std::vector<std::string> arguments;
    if (!config.path.empty()) arguments.push_back(config.path);
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) arguments.insert(arguments.end(), {option, value});
    };
    for (const Override& override : config.overrides) add("--set", override);
    add("--out", config.out);
    add("--key", key);
    if (resume != "none") add("--resume", resume);
    return arguments;
  }
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string name_of(const PlannedProcess& process) {
  const bool several = process.ids.find('-') != std::string::npos;
  const bool worker = process.ids.find('.') != std::string::npos;
  return fmt::format("{} {} on {}",
                     worker    ? "worker"
                     : several ? "peers"
                               : "peer",
                     process.ids, process.host);
}

/// The processes that have not ended, and what the user can do.
std::string wait_for(const std::vector<PlannedProcess>& planned,
                     const std::vector<std::size_t>& running) {
  constexpr std::size_t kMostNames = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(running.size(), kMostNames); ++i)
    names += (i == 0 ? "" : ", ") + name_of(planned[running[i]]);
  if (running.size() > kMostNames)
    names += fmt::format(", and {} more", running.size() - kMostNames);
  return fmt::format(
      "gossamer: waiting for {}; another Ctrl-C or SIGTERM kills the processes of this machine\n",
      names);
}

std::string end_of(const PlannedProcess& process, int code, bool killed) {
  const std::string peers = name_of(process);
  const bool remote = process.command.front() != "sh";
  if (remote && code == kOfSsh)
    return fmt::format("{}: {} cannot connect, or the connection broke; the process may go on",
                       peers, process.command.front());
  if (remote && killed)
    return fmt::format("{}: {} was killed; the process may go on", peers, process.command.front());
  if (code > 128 && code != static_cast<int>(ErrorKind::interrupted))
    return fmt::format("{} ended by signal {}", peers, code - 128);
  return fmt::format("{} ended with exit code {}", peers, code);
}

Result<int> execute(LaunchCommand command) {
  GOSSAMER_TRY(const std::vector<LaunchHost> hosts, read_hosts(command.hosts));
  // The processes read the file in --directory, which may be another one than this folder's.
  const fs::path there = fs::path(command.directory) / command.config.path;
  std::error_code none;  // the file may be on other machines only
  ConfigOptions read = command.config;
  if (!read.path.empty() && fs::exists(there, none)) read.path = there.string();
  GOSSAMER_TRY(const Config config, read.load());
  LaunchRequest request;
  request.hosts = hosts;
  GOSSAMER_TRY(request.nodes, node_count(config));
  request.workers = config.model.split.workers();
  request.ssh = words_of(command.ssh);
  if (request.ssh.empty()) return invalid_error("--ssh: there is no program in it");
  request.directory = command.directory.empty() ? fs::current_path().string() : command.directory;
  request.program =
      command.program.empty() ? fs::read_symlink("/proc/self/exe").string() : command.program;
  std::optional<TemporaryFolder> meeting;  // in which the processes of this machine meet
  const net::NetOptions& given = config.net;
  if (given.peers.empty() && given.rendezvous.empty() && given.seeds.empty()) {
    if (std::ranges::all_of(hosts, &LaunchHost::is_local)) {
      GOSSAMER_TRY(TemporaryFolder folder, TemporaryFolder::make());
      command.config.overrides.push_back("net.rendezvous=" + folder.path().string());
      meeting.emplace(std::move(folder));
    } else {
      net::NetOptions options = config.net;
      if (!command.key.empty()) options.key = command.key;
      GOSSAMER_TRY_STATUS(net::check_reach(
          options, {hosts.front().address, static_cast<std::uint16_t>(command.port)},
          command.hosts + ":"));
      if (!options.key.empty() && options.members.empty())
        return invalid_error(
            "net.key: the public keys of the peers are missing: name a file of them in "
            "net.members");
      // Where the list of members, if it is here too, has the addresses, the processes use those.
      if (fs::exists(options.members, none)) GOSSAMER_TRY_STATUS(add_addresses(options));
      if (options.peers.empty()) request.port = command.port;
      if (!options.listen.empty()) {
        GOSSAMER_TRY(const net::Address listen, net::parse_address(options.listen));
        request.listen = listen.host;
      }
    }
  }
  request.arguments = command.arguments();
  request.quiet = command.quiet;
  GOSSAMER_TRY(const std::vector<PlannedProcess> planned, plan_launch(request));
  const LaunchEvents events{
      [&planned](std::size_t k, const std::string& line) {
        return fmt::format("[{}] {}\n", planned[k].ids, printable(line));
      },
      [&planned](std::size_t k, int code, bool killed) {
        if (code != 0) print_message(end_of(planned[k], code, killed));
      },
      [&planned](const std::vector<std::size_t>& running) { return wait_for(planned, running); }};
  GOSSAMER_TRY(const std::vector<int> codes, run_processes(planned, events));
  const auto failed = std::ranges::find_if(codes, [](int code) { return code != 0; });
  if (failed == codes.end() && !command.quiet)
    fmt::print("{} process{} finished\n", codes.size(), codes.size() == 1 ? "" : "es");
  return failed == codes.end() ? 0 : *failed;
}

}  // namespace

void add_launch(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<LaunchCommand>();
  CLI::App* launch = app.add_subcommand(
      "launch", "run a network on machines that ssh reaches, or several processes on this one");
  launch
      ->add_option("hosts", command->hosts,
                   "file of the machines, one a line: [user@]name [slots=N] [address=NAME], with "
                   "N processes (default: 1); localhost alone needs no ssh")
      ->required();
  command->config.add_to(*launch);
  launch->add_option("--key", command->key, "as of gossamer peer; a path on every machine");
  add_resume(*launch, command->resume);
  launch
      ->add_option("--port", command->port,
                   "the first process of a machine listens on this port, the next one on the "
                   "next (a worker of a cut model on two), on every interface or on the host of "
                   "net.listen, unless net.peers, net.rendezvous or net.seeds is set")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  launch->add_option("--directory", command->directory,
                     "folder on every machine in which the processes run, with the configuration "
                     "(default: this one); on other machines a relative one begins at home");
  launch->add_option("--program", command->program,
                     "path of gossamer on every machine (default: this program's); a relative one "
                     "begins in the folder");
  launch
      ->add_option("--ssh", command->ssh,
                   "program that reaches a machine, and its options, in place of these")
      ->capture_default_str();
  launch->add_flag("--quiet,-q", command->quiet, "print no progress");
  launch->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
