// gossamer peer CONFIG --id I: runs a peer of a network. All machines use the same file.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "cli/commands.hpp"
#include "peer/runtime/network_run.hpp"
#include "peer/runtime/progress.hpp"
#include "peer/runtime/run.hpp"
#include "peer/runtime/start_round_agreement.hpp"
#include "peer/setup/credentials.hpp"
#include "peer/setup/local_rank.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct PeerCommand {
  ConfigOptions config;
  std::string id;
  std::string key;
  std::string resume = "none";
  bool quiet = false;
};

/// Environment variables in which launchers set the rank of a process, in order of precedence.
constexpr const char* kIdVariables[] = {"GOSSAMER_ID", "RANK", "SLURM_PROCID",
                                        "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

bool read_id(std::string_view text, int& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size() && number >= 0 &&
         number < 65536;
}

/// Parses the peers of this process: "3", "0,1" or "0-3".
Result<std::vector<int>> read_ids(const std::string& text, const std::string& origin) {
  const Error error{
      ErrorKind::invalid,
      fmt::format("{}: '{}' is not a peer id; use the form 3, 0,1 or 0-3", origin, text)};
  std::vector<int> ids;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = std::string_view(text).substr(begin, end - begin);
    const std::size_t dash = item.find('-');
    int first = 0, last = 0;
    if (!read_id(item.substr(0, dash), first)) return error;
    last = first;
    if (dash != std::string_view::npos && (!read_id(item.substr(dash + 1), last) || last < first))
      return error;
    for (int id = first; id <= last; ++id) ids.push_back(id);
    begin = end + 1;
  }
  std::sort(ids.begin(), ids.end());
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end())
    return Error{ErrorKind::invalid,
                 fmt::format("{}: '{}' names peer {} twice", origin, text, *twice)};
  return ids;
}

Result<std::vector<int>> find_ids(const std::string& option) {
  if (!option.empty()) return read_ids(option, "--id");
  for (const char* variable : kIdVariables)
    if (const char* value = std::getenv(variable)) return read_ids(value, variable);
  return Error{ErrorKind::invalid,
               "the id of this peer is missing: give --id, or set GOSSAMER_ID (RANK, SLURM_PROCID, "
               "OMPI_COMM_WORLD_RANK and PMI_RANK are read too)"};
}

Result<int> execute(const PeerCommand& command) {
  GOSSAMER_TRY(std::vector<int> ids, find_ids(command.id));
  GOSSAMER_TRY(Config config, command.config.load());
  GOSSAMER_TRY_STATUS(add_addresses(config.net));
  const LocalRank local_rank = find_local_rank(ids, config.run.peers, config.net,
                                               [](const char* name) { return std::getenv(name); });
  GOSSAMER_TRY(const Setup setup, make_setup(std::move(config), local_rank));
  if (!setup.device_note.empty()) print_message(setup.device_note);
  if (setup.trainer) setup.trainer->set_one_at_a_time(setup.config.local.deterministic);
  Progress progress(setup.config.run.rounds, command.quiet);
  NetworkRunRequest request;
  request.hosted = std::move(ids);
  request.folder = run_folder(setup.config);
  request.resume = resume_choice(command.resume);
  request.message = [&progress](const std::string& line) {
    progress.end();
    print_message(line);
  };
  request.on_progress = [&progress](const Json& record) { progress.show(record); };
  if (const std::string warning = agreement_warning(setup);
      !warning.empty() && request.hosted.front() == 0)
    print_message(warning);
  const Status status = run_networked(setup, request);
  progress.end();
  if (!status.ok()) return print_error(status.error());
  if (!command.quiet)
    fmt::print("peer {} finished {} rounds; run folder {}\n", request.hosted.front(),
               setup.config.run.rounds, request.folder.string());
  return 0;
}

}  // namespace

void add_peer(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<PeerCommand>();
  CLI::App* peer =
      app.add_subcommand("peer", "run a peer of a network; all machines use the same file");
  command->config.add_to(*peer);
  peer->add_option("--id", command->id,
                   "id of this peer, 0 to n-1 (default: GOSSAMER_ID, RANK, SLURM_PROCID, "
                   "OMPI_COMM_WORLD_RANK or PMI_RANK); several in one process: 0,1 or 0-3");
  peer->add_option(
      "--key", command->key,
      "file of this process's private key (default: net.key); gossamer keygen makes it");
  add_resume(*peer, command->resume);
  peer->add_flag("--quiet,-q", command->quiet, "print no progress");
  peer->callback([command, &exit_code] {
    if (!command->key.empty()) command->config.overrides.push_back("net.key=" + command->key);
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
