// gossamer peer CONFIG --id I: runs a peer of a network. All machines use the same file.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "base/id_list.hpp"
#include "cli/commands.hpp"
#include "peer/prediction/stable_step.hpp"
#include "peer/replica/replica_network.hpp"
#include "peer/replica/replica_rounds.hpp"
#include "peer/replica/whole_replica.hpp"
#include "peer/replica/worker_place.hpp"
#include "peer/runtime/network_ids.hpp"
#include "peer/runtime/network_run.hpp"
#include "peer/runtime/progress.hpp"
#include "peer/runtime/run.hpp"
#include "peer/runtime/start_round_agreement.hpp"

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

/// "finished 200 rounds"; of a process whose peers have all left before: after which round. In an
/// open run they leave when they want, and the log says when.
std::string end_of_rounds(const Setup& setup, const std::vector<int>& hosted) {
  if (setup.schedule->participants().is_open()) return "ended without an error";
  gossip::Round last = 0;
  for (const int id : hosted) {
    const auto end = setup.schedule->participants().end_of(id);
    last = std::max(last, end.value_or(setup.config.run.rounds));
  }
  return last == setup.config.run.rounds ? fmt::format("finished {} rounds", last)
                                         : fmt::format("left after {} rounds", last);
}

/// Prints the messages of a run and its progress, and what is unusual about its settings.
void show(const Setup& setup, Progress& progress, NetworkRunRequest& request) {
  request.message = [&progress](const std::string& line) {
    progress.end();
    print_message(line);
  };
  request.on_progress = [&progress](const Json& record) { progress.show(record); };
  if (!setup.device_note.empty()) print_message(setup.device_note);
  if (request.hosted.front() != 0) return;
  if (const std::string warning = agreement_warning(setup); !warning.empty())
    print_message(warning);
  if (const std::string warning = stable_step_warning(setup); !warning.empty())
    print_message("warning: " + warning);
}

Result<int> run_peers(const PeerCommand& command, Config config, const Environment& environment) {
  GOSSAMER_TRY(NetworkIds ids, find_network_ids(config,
                                                {.option = command.id,
                                                 .origin = "--id",
                                                 .folder = run_folder(config),
                                                 .message = print_message},
                                                environment));
  GOSSAMER_TRY(const Setup setup, make_network_setup(std::move(config), ids.ids, environment));
  NetworkRunRequest request;
  request.hosted = std::move(ids.ids);
  request.listening = std::move(ids.listening);
  request.folder = run_folder(setup.config);
  request.resume = resume_choice(command.resume);
  Progress progress(setup.config.run.rounds, command.quiet);
  show(setup, progress, request);
  const Status status = run_networked(setup, request);
  progress.end();
  if (!status.ok()) return print_error(status.error());
  if (!command.quiet)
    fmt::print("{} {}; run folder {}\n", peers_text(request.hosted),
               end_of_rounds(setup, request.hosted), request.folder.string());
  return 0;
}

/// A worker of a cut model that is in this process alone.
Result<int> run_worker(const PeerCommand& command, const Config& config, const WorkerPlace& worker,
                       const Environment& environment) {
  GOSSAMER_TRY_STATUS(check_worker(config, worker));
  if (const std::string note = page_note(config, worker); !note.empty()) print_message(note);
  const auto links = std::make_shared<ReplicaLinks>(worker.part, config.model.split.workers());
  GOSSAMER_TRY(const Setup setup,
               make_network_setup(part_config(config, worker), {worker.replica}, environment,
                                  nullptr, {worker.part, links.get()}));
  NetworkRunRequest request;
  request.hosted = {worker.replica};
  request.folder = run_folder(setup.config);
  request.resume = resume_choice(command.resume);
  request.offered = [&](const std::vector<gossip::Round>& rounds) {
    return rounds_of_replica(worker, config.model.split.workers(), *links, rounds);
  };
  request.name_of = [part = worker.part](int replica) {
    return "worker " + WorkerPlace{replica, part}.name();
  };
  request.on_start = [&](bool joins) { links->begin(joins); };
  Progress progress(setup.config.run.rounds, command.quiet);
  show(setup, progress, request);
  GOSSAMER_TRY(const auto replica,
               ReplicaNetwork::make(
                   setup, {worker, replica_config(config, worker), links, request.message}));
  GOSSAMER_TRY_STATUS(replica->join());
  Status collected;
  request.on_end = [&](const std::optional<Error>& error, const RowViews& rows) {
    if (!error) collected = collect_replica(setup, config, worker, *links, rows.front());
  };
  Status status = run_networked(setup, request);
  if (status.ok()) status = std::move(collected);
  status = replica->leave(status);
  progress.end();
  if (!status.ok()) return print_error(status.error());
  if (!command.quiet)
    fmt::print("worker {} {}; run folder {}\n", worker.name(), end_of_rounds(setup, request.hosted),
               request.folder.string());
  return 0;
}

Result<int> execute(const PeerCommand& command) {
  // Who read the output may be gone, as a launcher's machine may: the network goes on.
  std::signal(SIGPIPE, SIG_IGN);
  const Environment environment = [](const char* name) { return std::getenv(name); };
  GOSSAMER_TRY(Config config, command.config.load());
  GOSSAMER_TRY(const std::optional<WorkerPlace> worker,
               find_worker(config, command.id, "--id", environment));
  return worker ? run_worker(command, config, *worker, environment)
                : run_peers(command, std::move(config), environment);
}

}  // namespace

void add_peer(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<PeerCommand>();
  CLI::App* peer =
      app.add_subcommand("peer", "run a peer of a network; all machines use the same file");
  command->config.add_to(*peer);
  peer->add_option(
      "--id", command->id,
      "id of this peer, 0 to n-1; several in one process: 0,1 or 0-3; with [split], 2.1 is "
      "the worker of replica 2 that holds part 1 alone. Default: "
      "GOSSAMER_ID, or the rank of gossamer launch, torchrun, Slurm, Open MPI or MPICH; where "
      "they start fewer processes than peers, each hosts consecutive ids, and with [split], where "
      "they start as many as there are workers, each is one. Without any: the ids of "
      "net.key, or one that the process claims, with net.seeds");
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
