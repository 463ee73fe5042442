#include "peer/replica/worker_place.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/id_list.hpp"
#include "gossip/algorithm.hpp"
#include "peer/replica/worker_addresses.hpp"
#include "peer/runtime/run.hpp"
#include "peer/setup/hosted_ids.hpp"

namespace gossamer::peer {
namespace {

void add_folder(std::string& folder, const std::string& name) {
  if (!folder.empty()) folder = (std::filesystem::path(folder) / name).string();
}

Result<int> read_id(const std::string& text, const std::string& whole, const std::string& origin) {
  const auto ids = parse_ids(text, origin);
  if (!ids.ok() || ids->size() != 1)
    return invalid_error(fmt::format(
        "{}: '{}' names no worker; 2.1 is the worker with part 1 of replica 2", origin, whole));
  return ids->front();
}

/// By the rank among as many processes as there are workers; with no more of them than peers, each
/// holds whole replicas.
Result<std::optional<WorkerPlace>> worker_of_rank(const Config& config,
                                                  const Environment& environment) {
  GOSSAMER_TRY(const std::optional<LauncherRank> found, launcher_rank(environment));
  GOSSAMER_TRY(const int nodes, node_count(config));
  const int parts = config.model.split.workers(), workers = config.run.peers * parts;
  if (!found || found->size <= nodes) return std::optional<WorkerPlace>();
  if (found->size != workers)
    return invalid_error(fmt::format(
        "{}: {} processes were started: start {}, and each is one worker of the {} replicas of {}, "
        "or {} at most, and each holds whole replicas",
        found->variable, found->size, workers, config.run.peers, parts, nodes));
  return std::optional(worker_at(found->rank, parts));
}

}  // namespace

WorkerPlace worker_at(int number, int parts) { return {number / parts, number % parts}; }

std::string WorkerPlace::name() const { return fmt::format("{}.{}", replica, part); }

Result<std::optional<WorkerPlace>> find_worker(const Config& config, const std::string& option,
                                               const std::string& origin,
                                               const Environment& environment) {
  std::string text = option, name = origin;
  if (const char* id = environment("GOSSAMER_ID"); text.empty() && id != nullptr)
    text = id, name = "GOSSAMER_ID";
  if (text.empty() && config.model.split.is_on()) return worker_of_rank(config, environment);
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return std::optional<WorkerPlace>();
  WorkerPlace worker;
  GOSSAMER_TRY(worker.replica, read_id(text.substr(0, dot), text, name));
  GOSSAMER_TRY(worker.part, read_id(text.substr(dot + 1), text, name));
  return std::optional(worker);
}

Status check_worker(const Config& config, const WorkerPlace& worker) {
  const train::SplitOptions& split = config.model.split;
  if (!split.is_on())
    return invalid_error(
        fmt::format("worker {}: split.layers and split.parameters are 1, so a replica has one "
                    "worker, the peer itself: give its id, {}, or set split.layers",
                    worker.name(), worker.replica));
  if (worker.part >= split.workers())
    return invalid_error(fmt::format(
        "worker {}: with split.layers = {} and split.parameters = {} the workers of replica {} are "
        "{}.0 to {}.{}",
        worker.name(), split.layers, split.parameters, worker.replica, worker.replica,
        worker.replica, split.workers() - 1));
  if (worker.replica >= config.run.peers)
    return invalid_error(fmt::format("worker {}: with run.peers = {} the replicas are 0 to {}",
                                     worker.name(), config.run.peers, config.run.peers - 1));
  const auto refuse = [&](const std::string& what) {
    return invalid_error(
        fmt::format("worker {}: {}; or give --id {}, and the process holds the whole replica",
                    worker.name(), what, worker.replica));
  };
  if (const Status reachable = check_worker_addresses(config); !reachable.ok())
    return refuse(reachable.error().message);
  if (config.optimizer.rule.kind == gpu::UpdateRule::Kind::muon)
    return refuse(
        "optimizer.kind = muon has another update for the model's last matrix, and a worker does "
        "not know which one that is: set another optimizer.kind");
  if (config.run.open)
    return refuse(
        "replicas of several processes do not join a network that runs: set run.open = false");
  if (config.mixing.kind != "mean")
    return refuse(
        "workers mix their parts one by one, which the mean allows: set mixing.rule = mean");
  if (config.exchange.kind() == gossip::Policy::deadline)
    return refuse(
        "under deadline the network of each part leaves out rounds of its own, and a replica "
        "trains in those of all its parts: set algorithm.policy = sync, stale or async");
  if (!config.attack.options.peers.empty())
    return refuse("hostile replicas are in one process: set attack.kind = none");
  GOSSAMER_TRY(const auto algorithm,
               gossip::make_algorithm(config.algorithm.kind, config.algorithm.values));
  if (algorithm->requirements().servers > 0)
    return refuse(fmt::format("the servers of '{}' hold whole models", config.algorithm.kind));
  return {};
}

Config part_config(Config config, const WorkerPlace& worker) {
  const std::string name = fmt::format("part{}of{}", worker.part, config.model.split.workers());
  config.local.out = (run_folder(config) / name).string();
  config.net = part_options(config, worker.part);
  add_folder(config.net.rendezvous, name);
  add_folder(config.checkpoint.folder, name);
  if (worker.part > 0) config.net.http.clear();
  return config;
}

std::string page_note(const Config& config, const WorkerPlace& worker) {
  if (worker.part == 0 || config.net.http.empty()) return {};
  return fmt::format("net.http: worker {} serves no page; those of part 0 do, such as worker {}",
                     worker.name(), WorkerPlace{worker.replica, 0}.name());
}

Config replica_config(Config config, const WorkerPlace& worker) {
  const std::string name = fmt::format("replica{}", worker.replica);
  config.run.id = config.run_id() + "-" + name;
  config.net = replica_options(config, worker.replica);
  add_folder(config.net.rendezvous, name);
  config.net.http.clear();
  return config;
}

}  // namespace gossamer::peer
