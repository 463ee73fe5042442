#include "peer/doctor/network_check.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "net/listening.hpp"
#include "net/network.hpp"
#include "net/startup/address_probe.hpp"
#include "net/startup/rendezvous.hpp"
#include "peer/config/members_file.hpp"
#include "peer/doctor/available_memory.hpp"
#include "peer/replica/replica_links.hpp"
#include "peer/replica/worker_addresses.hpp"
#include "peer/replica/worker_place.hpp"
#include "peer/setup/credentials.hpp"
#include "peer/setup/hosted_ids.hpp"
#include "peer/setup/memory_check.hpp"
#include "peer/setup/setup.hpp"
#include "peer/setup/untrained_workload.hpp"
#include "peer/watch/run_page.hpp"

namespace gossamer::peer {
namespace {

using State = Finding::State;
using net::ProbeOutcome;

constexpr double kMiB = 1024.0 * 1024;
constexpr std::chrono::days kExpiresSoon(30);

class NetworkCheck {
 public:
  NetworkCheck(const Config& config, const NetworkCheckRequest& request,
               const Environment& environment)
      : config_(config), request_(request), environment_(environment) {}

  std::vector<Finding> run() {
    check_clock();
    const Config whole = config_;
    if (find_place() && find_nodes() && find_ids() && check_addresses() && check_keys()) {
      check_setup();
      check_port();
      check_page();
      check_rendezvous();
      check_others();
      if (worker_) check_replica(whole);
    }
    return std::move(findings_);
  }

 private:
  void add(State state, std::string subject, std::string text,
           ErrorKind kind = ErrorKind::invalid) {
    findings_.push_back({state, std::move(subject), std::move(text), kind});
  }
  /// Returns false: what follows depends on it.
  bool problem(std::string subject, const Error& error) {
    add(State::problem, std::move(subject), error.message, error.kind);
    return false;
  }

  /// A worker of a cut model is a peer of the network of its part.
  bool find_place() {
    const auto worker = find_worker(config_, request_.id_option, "--id", environment_);
    if (!worker.ok()) return problem("ids", worker.error());
    worker_ = *worker;
    if (!worker_) return true;
    if (const Status valid = check_worker(config_, *worker_); !valid.ok())
      return problem("ids", valid.error());
    config_ = part_config(config_, *worker_);
    return true;
  }

  bool find_nodes() {
    const auto nodes = node_count(config_);
    if (!nodes.ok()) return problem("configuration", nodes.error());
    nodes_ = *nodes;
    net::expand_addresses(config_.net, nodes_);
    if (!worker_)
      if (const Status same = check_member_addresses(config_.net); !same.ok())
        return problem("addresses", same.error());
    const Status added = add_addresses(config_.net);
    return added.ok() || problem("members", added.error());
  }

  bool check_addresses() {
    const Status valid = net::validate(config_.net, nodes_, ids_);
    return valid.ok() || problem("addresses", valid.error());
  }

  /// No part of a run depends on clocks that agree, only the times in the logs.
  void check_clock() {
    timex state{};
    const int clock = ::adjtimex(&state);
    if (clock < 0) return add(State::note, "clock", "whether it is synchronised could not be read");
    if (clock == TIME_ERROR)
      add(State::note, "clock",
          "not synchronised: the times in the logs of different machines will not agree; start "
          "chrony, or systemd-timesyncd");
    else add(State::ok, "clock", "synchronised");
  }

  bool find_ids() {
    if (worker_) {
      ids_ = {worker_->replica};
      add(State::ok, "ids",
          fmt::format("worker {}: part {} of {}, in replica {} of {}", worker_->name(),
                      worker_->part, config_.model.split.workers(), worker_->replica, nodes_));
      return true;
    }
    auto given = given_ids(request_.id_option, "--id", nodes_, environment_);
    if (given.ok() && given->empty() && !config_.net.key.empty()) given = ids_of_key(config_.net);
    if (!given.ok()) return problem("ids", given.error());
    ids_ = *std::move(given);
    if (const Status valid = check_ids(config_, ids_); !valid.ok())
      return problem("ids", valid.error());
    if (!ids_.empty()) {
      add(State::ok, "ids", fmt::format("{} of {} nodes", fmt::join(ids_, ", "), nodes_));
    } else if (!config_.net.seeds.empty() && config_.net.peers.empty()) {
      add(State::ok, "ids", "the process will claim one, as it was given none");
    } else {
      return problem("ids", no_id("--id"));
    }
    return true;
  }

  bool check_keys() {
    if (config_.net.key.empty()) {
      add(State::note, "keys", "none: anyone who reaches the port can read and change the rows");
      return true;
    }
    auto credentials = load_credentials(config_.net, ids_);
    if (!credentials.ok()) return problem("keys", credentials.error());
    credentials_ = *std::move(credentials);
    std::vector<int> without;
    for (int node = 0; node < nodes_; ++node)
      if (const net::Member* member = credentials_->members.find(node);
          member == nullptr || member->keys.empty())
        without.push_back(node);
    if (without.empty())
      add(State::ok, "keys", "this process has its own, and every node has one in the list");
    else
      add(State::problem, "keys",
          fmt::format("node {} has no key in the list, or one that has expired, and could not "
                      "connect; add the key that `gossamer keygen` prints there",
                      fmt::join(without, ", ")));
    check_expiry();
    return true;
  }

  /// Names the nodes that will soon have no key.
  void check_expiry() {
    if (config_.net.members.empty()) return;
    const auto file = read_members(config_.net.members);
    if (!file.ok()) return;  // it was read a moment ago
    const auto now = wall_time();
    for (const auto& [id, keys] : file->keys) {
      const auto last = std::ranges::max(keys, {}, &MembersFile::Key::expires).expires;
      if (last > now && last - now < kExpiresSoon)
        add(State::note, "expiry",
            fmt::format("the last key of node {} expires at {:%Y-%m-%d %H:%M} UTC: add another one "
                        "to the list of each machine before",
                        id, fmt::gmtime(std::chrono::system_clock::to_time_t(last))));
    }
  }

  void check_setup() {
    const bool own_data = config_.shards.partition == "own";
    if (ids_.empty() && own_data)
      return add(State::note, "configuration", "not checked: whose data to read, the id decides");
    const std::vector<int> hosted = ids_.empty() ? std::vector{0} : ids_;
    // Nothing is trained, so the links to the other workers stay unused.
    ReplicaLinks links(worker_ ? worker_->part : 0, config_.model.split.workers());
    train::Worker<float> part;
    if (worker_) part = {worker_->part, &links};
    const bool of_program = config_.model.kind == kExternalModel;
    std::shared_ptr<Workload> external;
    if (of_program) external = make_recorded_workload({{"x", {1}, 0, 1}}, config_.run.seed);
    const auto setup = make_network_setup(config_, hosted, environment_, std::move(external), part);
    if (!setup.ok()) {
      problem("configuration", setup.error());
      return;
    }
    page_ = setup->config.net.http;
    const std::string graph =
        fmt::format("{} peers on {}", config_.run.peers, config_.topology.kind);
    if (of_program) return add_program(graph);
    add(State::ok, "configuration",
        fmt::format("{}, {} parameters each", graph, setup->parameters));
    check_node_memory(*setup, hosted.size());
  }

  /// Where the port of this process is taken, it may run already, and serve its page.
  void check_page() {
    if (page_.empty() || listening_.empty()) return;
    RunPage page;
    if (const Status served = page.serve("net.http", page_); served.ok())
      add(State::ok, "page", page.url());
    else problem("page", served.error());
  }

  /// What the configuration asks of a program that is not here.
  void add_program(const std::string& graph) {
    add(State::ok, "configuration", graph + "; the model is the program's, and not here");
    if (config_.shards.weights != "peers")
      add(State::note, "program",
          "data.weights: it has to say how many samples each peer has (samples or moments)");
    if (config_.checkpoint.every > 0)
      add(State::note, "program",
          "checkpoint.every: a task needs the methods state and load_state");
  }

  void check_node_memory(const Setup& setup, std::size_t hosted) {
    if (!setup.device->host_accessible()) {
      if (const Status fits = check_memory(setup, hosted); !fits.ok())
        problem("memory", fits.error());
      else
        add(State::ok, "memory", "the nodes of this process fit on " + setup.device->description());
      return;
    }
    const auto needed = static_cast<double>(memory_of_node(setup) * hosted);
    const auto available = available_memory();
    if (!available) return;
    const std::string within =
        available->limit.empty() ? "" : fmt::format(" within {}", available->limit);
    const std::string text = fmt::format("{:.1f} MiB for rows and training, {:.0f} MiB available{}",
                                         needed / kMiB, available->bytes / kMiB, within);
    if (needed <= available->bytes) return add(State::ok, "memory", text);
    add(State::problem, "memory",
        text + "; use fewer peers in this process, or a smaller model or batch");
  }

  void check_port() {
    const auto listening = net::open_listening(config_.net, ids_);
    if (listening.ok()) {
      listening_ = to_string(listening->address);
      return add(State::ok, port_subject_,
                 fmt::format("{} is free", to_string(listening->port.address())));
    }
    if (credentials_ && !ids_.empty() && !config_.net.peers.empty()) {
      const std::string& own = config_.net.peers.at(static_cast<std::size_t>(ids_.front()));
      const auto probed =
          net::probe_addresses({{ids_.front(), own}}, credentials_, request_.deadline);
      if (probed.front().outcome == ProbeOutcome::listens)
        return add(State::note, port_subject_,
                   own + ": a process with this key listens there already");
    }
    add(State::problem, port_subject_, listening.error().message, ErrorKind::network);
  }

  void check_rendezvous() {
    const std::string& folder = config_.net.rendezvous;
    if (folder.empty()) return;
    std::error_code error;
    if (!std::filesystem::exists(folder, error))
      return add(
          State::note, "rendezvous",
          fmt::format("there is no folder {} yet; every machine must see the same one", folder));
    if (!std::filesystem::is_directory(folder, error))
      return add(State::problem, "rendezvous", folder + " is a file, and has to be a folder",
                 ErrorKind::data);
    if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0)
      return add(
          State::problem, "rendezvous",
          fmt::format("{}: {}; the process writes its address there", folder, std::strerror(errno)),
          ErrorKind::data);
    add(State::ok, "rendezvous",
        folder + " is a folder; addresses appear in it as processes start");
    const net::Rendezvous place(folder, config_.run_id(), config_.shared_settings());
    rendezvous_addresses_.resize(static_cast<std::size_t>(nodes_));
    for (int node = 0; node < nodes_; ++node) {
      if (const auto found = place.find(node); found.ok())
        rendezvous_addresses_[static_cast<std::size_t>(node)] = to_string(*found);
      else if (const std::string other = place.other_run(node); !other.empty())
        add(State::note, name_of_(node), other + "; if its process runs, it waits in vain");
    }
  }

  void check_others() {
    std::vector<net::ProbeRequest> requests;
    std::vector<std::string> names;
    const std::vector<std::string>& addresses =
        rendezvous_addresses_.empty() ? config_.net.peers : rendezvous_addresses_;
    for (std::size_t node = 0; node < addresses.size(); ++node) {
      const std::string& address = addresses[node];
      if (address.empty()) continue;
      const bool own = std::ranges::find(ids_, static_cast<int>(node)) != ids_.end();
      const bool twice = std::ranges::find(requests, address, &net::ProbeRequest::address) !=
                         requests.end();  // another node of the same process
      if (own || twice) continue;
      requests.push_back({static_cast<int>(node), address});
      names.push_back(name_of_(static_cast<int>(node)));
    }
    const auto results = net::probe_addresses(requests, credentials_, request_.deadline);
    for (std::size_t i = 0; i < results.size(); ++i)
      report(names[i], requests[i].address, results[i]);
    if (config_.net.peers.empty()) check_seeds();
  }

  /// The other network of a worker, whose nodes are the parts of its replica.
  void check_replica(const Config& whole) {
    const int parts = whole.model.split.workers();
    NetworkCheck replica(replica_config(whole, *worker_), request_, environment_);
    replica.nodes_ = parts;
    replica.ids_ = {worker_->part};
    replica.port_subject_ = "second port";
    replica.name_of_ = [this](int part) {
      return fmt::format("replica {}, part {}", worker_->replica, part);
    };
    auto credentials = replica_credentials(replica.config_.net, *worker_, parts);
    if (!credentials.ok()) {
      problem("keys of the replica", credentials.error());
      return;
    }
    replica.credentials_ = *std::move(credentials);
    replica.check_port();
    replica.check_others();
    std::ranges::move(replica.findings_, std::back_inserter(findings_));
  }

  /// The process at a seed may be any, so its key is not known.
  void check_seeds() {
    std::vector<net::ProbeRequest> requests;
    for (const std::string& seed : config_.net.seeds)
      if (seed == listening_) add(State::ok, "seed", seed + ": this process would listen there");
      else requests.push_back({0, seed});
    const auto results = net::probe_addresses(requests, std::nullopt, request_.deadline);
    for (std::size_t i = 0; i < results.size(); ++i)
      report("seed", requests[i].address, results[i]);
  }

  void report(const std::string& name, const std::string& address, const net::ProbeResult& result) {
    const std::string text = fmt::format("{}: {}", address, result.text);
    switch (result.outcome) {
      case ProbeOutcome::listens: return add(State::ok, name, text);
      case ProbeOutcome::no_process:
        return add(State::note, name,
                   text + "; its machine answers, so the process has only to be started");
      case ProbeOutcome::no_answer:
        return add(State::problem, name,
                   fmt::format("{}; the machine is off, or a firewall drops packets to that port: "
                               "open it there for this machine{}",
                               text, is_number(address) ? "" : "; or no name server answers"),
                   ErrorKind::join_timeout);
      case ProbeOutcome::wrong_key:
        return add(State::problem, name, text + "; correct net.members, or the address",
                   ErrorKind::rejected);
      case ProbeOutcome::refused: return add(State::problem, name, text, ErrorKind::rejected);
      case ProbeOutcome::failed: return add(State::problem, name, text, ErrorKind::join_timeout);
    }
  }

  static bool is_number(const std::string& address) {
    const auto parsed = net::parse_address(address);
    return parsed.ok() && net::is_numeric(parsed->host);
  }

  Config config_;
  const NetworkCheckRequest& request_;
  const Environment& environment_;
  std::optional<WorkerPlace> worker_;  ///< none: the process holds whole peers
  int nodes_ = 0;
  std::vector<int> ids_;  ///< of this process; empty: it will claim one
  std::optional<net::Credentials> credentials_;
  std::string page_;  ///< net.http of this process, once its setup is known
  std::vector<std::string> rendezvous_addresses_;  ///< by node; empty without such a folder
  std::string listening_;  ///< the address at which it would listen; empty: the port is taken
  std::vector<Finding> findings_;
  std::string port_subject_ = "port";
  std::function<std::string(int)> name_of_ = [this](int node) {
    return worker_ ? "worker " + WorkerPlace{node, worker_->part}.name() : net::peer_name(node);
  };
};

}  // namespace

std::vector<Finding> check_network(const Config& config, const NetworkCheckRequest& request,
                                   const Environment& environment) {
  return NetworkCheck(config, request, environment).run();
}

}  // namespace gossamer::peer
