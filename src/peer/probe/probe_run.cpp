#include "peer/probe/probe_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/id_list.hpp"
#include "net/options.hpp"
#include "peer/runtime/network_place.hpp"
#include "peer/runtime/start_agreement.hpp"
#include "peer/setup/credentials.hpp"
#include "peer/setup/hosted_ids.hpp"
#include "peer/setup/memory_check.hpp"

namespace gossamer::peer {
namespace {

constexpr int kMostProbed = 4096;  // nodes: each has a connection to each other one
// The steps of a round are repeated for four seconds, but at most this often. If a round has more
// than a second of steps, a second of them stands for it.
constexpr double kStepSeconds = 4, kRoundSeconds = 1;
constexpr std::size_t kMostStepRuns = 1000;

Status check_size(const Setup& setup, const std::vector<int>& hosted) {
  const int nodes = setup.nodes();
  if (setup.config.run.open)
    return invalid_error(fmt::format(
        "run.open: a probe waits for all of its peers, and only some of run.peers = {} need exist: "
        "set run.open = false, and run.peers to the number of processes that you start",
        nodes));
  if (nodes > kMostProbed)
    return invalid_error(fmt::format(
        "run.peers: {} peers and servers would measure {} pairs, over as many connections; a probe "
        "is of at most {}",
        nodes, static_cast<std::int64_t>(nodes) * (nodes - 1) / 2, kMostProbed));
  if (static_cast<std::size_t>(nodes) == hosted.size())
    return invalid_error(
        "this process hosts all peers, so there is no link to measure; start other processes, with "
        "other ids");
  return {};
}

}  // namespace

Config probe_config(Config config) {
  config.run.id = config.run_id() + "-probe";
  if (std::string& folder = config.net.rendezvous; !folder.empty())
    folder = (std::filesystem::path(folder) / "probe").string();
  return config;
}

Result<std::optional<ProbeTables>> probe_network(const Setup& setup, const ProbeRequest& request) {
  GOSSAMER_TRY_STATUS(check_ids(setup.config, request.hosted));
  GOSSAMER_TRY_STATUS(check_addresses(setup));
  GOSSAMER_TRY_STATUS(check_size(setup, request.hosted));
  GOSSAMER_TRY_STATUS(net::validate(setup.config.net, setup.nodes(), request.hosted));
  GOSSAMER_TRY(std::optional<net::Credentials> credentials,
               load_credentials(setup.config.net, request.hosted));
  GOSSAMER_TRY_STATUS(check_memory(setup, request.hosted.size()));
  GOSSAMER_TRY(auto pairs, all_pairs(setup.nodes()));
  setup.workload->set_one_at_a_time(setup.config.local.deterministic);
  return ProbeRun(setup, request, std::move(pairs)).run(std::move(credentials));
}

ProbeRun::ProbeRun(const Setup& setup, const ProbeRequest& request,
                   std::unique_ptr<topology::MixingSchedule> all_pairs)
    : setup_(setup),
      request_(request),
      all_pairs_(std::move(all_pairs)),
      device_(setup.device->host_accessible() ? *setup.device : host_memory_),
      shared_memory_(setup.share_rows()),  // before the rows are allocated
      compute_(scheduler_, executor_, device_, nullptr, gossip::StepTimes{}),
      group_(group_request(), *this, [this](Error error) { abort(std::move(error)); }),
      step_timer_(setup, request.hosted),
      thread_(scheduler_, *setup.device, [this](const Error& error) {
        abort({ErrorKind::internal, fmt::format("computing on {} failed: {}",
                                                setup_.device->description(), error.message)});
      }) {
  algorithm_.plan.on_error = [this](const Error& error) { abort(error); };
  algorithm_.on_result = [this](const std::vector<ProcessMeasurement>& measured) {
    tables_ = tables_of(measured, processes_, setup_.workers());
  };
}

gossip::GroupRequest ProbeRun::group_request() {
  gossip::GroupRequest group{scheduler_, compute_, device_, *all_pairs_, algorithm_};
  group.exchange.chunk_values = kMostPartValues;
  group.exchange.rounds = 1;
  group.exchange.row_limit = gossip::from_seconds(setup_.config.net.row_timeout);
  group.hosted = request_.hosted;
  group.engine.peers = setup_.nodes();
  group.engine.rounds = 1;
  group.layout.length = kMostPartValues;
  group.layout.gradient = false;
  return group;
}

void ProbeRun::finished(gossip::PeerEngine&) {
  if (group_.finished()) scheduler_.stop();
}

void ProbeRun::fail(Error error) {
  if (!error_) error_ = std::move(error);
  scheduler_.stop();
}

/// An error of this process: the others end too.
void ProbeRun::abort(Error error) {
  fail(std::move(error));
  if (network_) notify_others();
}

/// The operator of this process did not stop the others: they have lost a peer.
void ProbeRun::notify_others() {
  Error error = for_others(*error_, request_.hosted);
  if (error.kind == ErrorKind::interrupted) error.kind = ErrorKind::lost_peer;
  network_->abort(std::move(error));
}

net::NetworkSetup ProbeRun::network_setup(std::optional<net::Credentials> credentials) {
  net::NetworkSetup network;
  network.options = setup_.config.net;
  network.credentials = std::move(credentials);
  network.identity = identity_of(setup_);
  network.hosted = request_.hosted;
  network.listening = request_.listening;
  network.pairs = pairs_of(algorithm_, *all_pairs_, request_.hosted);
  network.memory.rows = shared_memory_;
  network.message = request_.message;
  network.fault = [this](const Error& error) { fail(error); };
  network.on_tick = [this](gossip::Time counted) { group_.exchange().on_tick(counted); };
  return network;
}

Result<std::optional<ProbeTables>> ProbeRun::run(std::optional<net::Credentials> credentials) {
  GOSSAMER_TRY(network_, net::Network::make(scheduler_, network_setup(std::move(credentials)),
                                            group_.exchange()));
  connect_faults();
  Status status = join();
  if (status.ok()) status = agree();
  if (status.ok()) status = measure_steps();
  if (status.ok()) status = measure_network();
  if (!status.ok() && !error_) error_ = status.error();
  if (error_) notify_others();
  network_->leave();
  if (error_) return *error_;
  return std::move(tables_);
}

void ProbeRun::connect_faults() {
  gossip::FaultReporter& faults = group_.exchange().faults();
  faults.on_protocol_violation = [this](int here, int there, const Error& why) {
    network_->end_link(here, there, net::Network::Blame::violation, why);
  };
  faults.on_overdue = [this](int here, int there, const Error& why) {
    network_->end_link(here, there, net::Network::Blame::overdue, why);
  };
  scheduler_.on_interrupt([this](int) { abort(stopped(request_.hosted, "operator")); });
}

Status ProbeRun::join() {
  GOSSAMER_TRY_STATUS(network_->join());
  if (network_->late())
    return Error{ErrorKind::rejected,
                 "the others measure already, and no process can join them; when they have ended, "
                 "start all of them again"};
  for (const auto& [here, there] : pairs_of(algorithm_, *all_pairs_, request_.hosted))
    group_.exchange().connect(here, there, network_->link(here, there));
  return {};
}

/// Which process hosts which nodes, and, as in a run, what each peer's own data are.
Status ProbeRun::agree() {
  GOSSAMER_TRY(StartAgreement start, StartAgreement::make(setup_, request_.hosted, {0}));
  ProcessList list(request_.hosted, setup_.nodes());
  const net::AllGather inner = start.all_gather();
  int sent = 0;  // contributions; one is merged before the next one is sent
  net::AllGather gather;
  gather.steps = 1 + inner.steps;
  gather.contribution = [&] { return sent++ == 0 ? list.contribution() : inner.contribution(); };
  gather.merge = [&](int here, int there, const std::string& contribution) {
    return sent == 1 ? list.merge(contribution) : inner.merge(here, there, contribution);
  };
  GOSSAMER_TRY_STATUS(network_->all_gather(std::move(gather)));
  GOSSAMER_TRY(processes_, list.processes());
  GOSSAMER_TRY(const Shards shards, start.shards());
  for (const std::vector<int>& hosted : processes_)
    algorithm_.plan.processes.push_back(hosted.front());
  if (shards.empty()) return {};
  return compute([this, shards] { setup_.workload->agree(shards); });
}

/// On the thread that computes: heartbeats are sent meanwhile.
Status ProbeRun::compute(std::function<void()> work) {
  const auto done = std::make_shared<bool>(false);  // an interrupt may end the wait before the work
  thread_.execute(std::move(work), [done] { *done = true; });
  scheduler_.run_until([&] { return *done || error_; });
  return *done ? Status() : Status(*error_);
}

/// All processes at about the same time, and the steps of a round in one piece: processes of one
/// machine then share its cores as in a run.
Status ProbeRun::measure_steps() {
  request_.message(fmt::format("{} processes measure their local steps, and then their links",
                               processes_.size()));
  if (!step_timer_.trains()) return {};
  GOSSAMER_TRY_STATUS(compute([this] { step_timer_.run(1); }));  // memory is touched
  GOSSAMER_TRY(const double one, seconds_of_steps(1));
  const double affordable = std::clamp(kRoundSeconds / std::max(one, 1e-9), 1.0, 1e9);
  const int steps = static_cast<int>(
      std::min(step_timer_.steps_per_round(), static_cast<std::uint64_t>(affordable)));
  std::vector<double> durations;
  double total = 0;
  while (durations.size() < kMostStepRuns && (total < kStepSeconds || durations.empty())) {
    GOSSAMER_TRY(const double seconds, seconds_of_steps(steps));
    durations.push_back(seconds);
    total += seconds;
  }
  algorithm_.steps.step_ms = total / static_cast<double>(durations.size()) / steps * 1e3;
  algorithm_.steps.spread = estimate_step_spread(std::move(durations), steps);
  return {};
}

/// With the change to the thread that computes, and back, as in a run.
Result<double> ProbeRun::seconds_of_steps(int steps) {
  const gossip::Time begin = scheduler_.now();
  GOSSAMER_TRY_STATUS(compute([this, steps] { step_timer_.run(steps); }));
  return gossip::seconds(scheduler_.now() - begin);
}

Status ProbeRun::measure_network() {
  for (const auto& engine : group_.engines()) {
    engine->begin_at(0);
    engine->start();
  }
  network_->release_chunks();
  try {
    scheduler_.run();
  } catch (const std::exception& failure) {  // memory: the other processes are notified
    abort({ErrorKind::internal,
           fmt::format("{} failed: {}", peers_text(request_.hosted), failure.what())});
  }
  return error_ ? Status(*error_) : Status();
}

}  // namespace gossamer::peer
