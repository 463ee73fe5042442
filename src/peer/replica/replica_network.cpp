#include "peer/replica/replica_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "peer/replica/worker_addresses.hpp"
#include "peer/runtime/network_place.hpp"

namespace gossamer::peer {
namespace {

constexpr gossip::Round kRound = 0;
constexpr int kMessageRow = 0, kAgreementRow = 1;
constexpr const char* kNoLongerWhole = "is no longer whole";

template <class Value>
std::vector<std::span<Value>> pieces_of(std::span<Value> values) {
  std::vector<std::span<Value>> pieces;
  for (std::size_t begin = 0; begin < values.size(); begin += ReplicaExchange::kMostValues)
    pieces.push_back(
        values.subspan(begin, std::min(ReplicaExchange::kMostValues, values.size() - begin)));
  return pieces;
}

}  // namespace

std::vector<gossip::RowSpec> ReplicaExchange::rows(const topology::MixingSchedule&) const {
  std::vector<gossip::RowSpec> rows(2);
  rows[kMessageRow].name = "message";
  rows[kAgreementRow].name = "agreement";
  for (gossip::RowSpec& row : rows) row.survives = false;
  return rows;
}

gossip::AlgorithmRequirements ReplicaExchange::requirements() const {
  gossip::AlgorithmRequirements needs;
  needs.mixing_matrix = false;
  needs.trainer = false;
  return needs;
}

gossip::task<void> ReplicaExchange::round(gossip::Node& node, gossip::Round) const {
  std::vector<float> values;
  const std::optional<int> any_sender;
  for (;;) {
    const ReplicaLinks::Work work = links_.take();
    send_agreement(node, work.agreement);
    for (const ReplicaLinks::Message& message : work.outgoing)
      for (const std::span<const float> piece : pieces_of<const float>(message.values))
        node.send_copy(message.part, kRound, kMessageRow, piece);
    if (work.wanted) {
      values.resize(work.wanted->values);
      for (const std::span<float> piece : pieces_of<float>(values))
        co_await node.receive(work.wanted->part, kRound, kMessageRow, piece,
                              gossip::Combine::replace);
      links_.arrived(values);
    } else if (work.done) {
      co_return;
    } else {
      co_await node.wait_event(any_sender);
    }
  }
}

gossip::task<void> ReplicaExchange::agree(gossip::Node& node, Refuse refuse) const {
  std::vector<float> values(StepAgreement::kValues);
  for (;;) {
    const gossip::MessageOrigin origin =
        co_await node.receive_any(kAgreementRow, values, gossip::Combine::replace);
    const Status taken = links_.agreement_arrived(origin.from, values);
    if (!taken.ok()) refuse(origin.from, taken.error());
    send_agreement(node, links_.take_agreement());
  }
}

void ReplicaExchange::send_agreement(gossip::Node& node,
                                     const std::vector<ReplicaLinks::Message>& messages) {
  for (const ReplicaLinks::Message& message : messages)
    node.send_copy(message.part, kRound, kAgreementRow, message.values);
}

std::vector<int> ReplicaExchange::partners(int i, const topology::MixingSchedule& schedule) const {
  std::vector<int> others;
  for (int j = 0; j < schedule.peers(); ++j)
    if (j != i) others.push_back(j);
  return others;
}

Result<std::unique_ptr<ReplicaNetwork>> ReplicaNetwork::make(const Setup& setup,
                                                             ReplicaRequest request) {
  GOSSAMER_TRY(auto pairs, all_pairs(setup.config.model.split.workers()));
  std::unique_ptr<ReplicaNetwork> made(
      new ReplicaNetwork(setup, std::move(request), std::move(pairs)));
  GOSSAMER_TRY(net::NetworkSetup network, made->network_setup());
  GOSSAMER_TRY(made->network_,
               net::Network::make(made->scheduler_, std::move(network), made->group_.exchange()));
  if (const std::string& members = setup.config.net.members; !members.empty()) {
    const auto changed = [made = made.get()](const net::MemberList& list) {
      made->network_->set_members(
          workers_of(list, made->request_.worker, made->all_pairs_->peers()));
    };
    const auto says_nothing = [](const std::string&) {};  // the worker's other network says it
    GOSSAMER_TRY(made->members_watch_,
                 MembersWatch::make(made->scheduler_, members, changed, says_nothing));
  }
  return made;
}

ReplicaNetwork::ReplicaNetwork(const Setup& setup, ReplicaRequest request,
                               std::unique_ptr<topology::MixingSchedule> all_pairs)
    : setup_(setup),
      request_(std::move(request)),
      all_pairs_(std::move(all_pairs)),
      algorithm_(*request_.links),
      compute_(scheduler_, executor_, device_, nullptr, gossip::StepTimes{}),
      group_(group_request(), *this, [this](Error error) { lose(error); }) {}

ReplicaNetwork::~ReplicaNetwork() {
  if (thread_.joinable()) static_cast<void>(leave(Error{ErrorKind::interrupted, "it ends"}));
}

gossip::GroupRequest ReplicaNetwork::group_request() {
  gossip::GroupRequest group{scheduler_, compute_, device_, *all_pairs_, algorithm_};
  group.exchange.chunk_values = ReplicaExchange::kMostValues;
  group.exchange.rounds = 1;
  group.hosted = {request_.worker.part};
  group.engine.peers = all_pairs_->peers();
  group.engine.rounds = 1;
  group.layout.length = ReplicaExchange::kMostValues;
  group.layout.gradient = false;
  return group;
}

Result<net::NetworkSetup> ReplicaNetwork::network_setup() {
  const int parts = all_pairs_->peers();
  net::NetworkSetup network;
  network.options = request_.config.net;
  GOSSAMER_TRY_STATUS(net::validate(network.options, parts, {request_.worker.part}));
  GOSSAMER_TRY(network.credentials, replica_credentials(network.options, request_.worker, parts));
  network.identity.run_id = request_.config.run_id();
  network.identity.peers = parts;
  network.identity.topology = fmt::format("workers of replica {}", request_.worker.replica);
  network.identity.model = fmt::format("{} in {} parts", setup_.config.model.kind, parts);
  network.identity.configuration = setup_.configuration_hash();
  network.identity.settings = setup_.config.shared_settings();
  network.hosted = {request_.worker.part};
  network.pairs = pairs_of(algorithm_, *all_pairs_, network.hosted);
  network.message = [this](const std::string& line) {
    request_.message(fmt::format("workers of replica {}: {}", request_.worker.replica, line));
  };
  network.words.counts_rounds = false;  // its messages are of steps, and all have one round
  network.words.name_of = [replica = request_.worker.replica](int part) {
    return "worker " + WorkerPlace{replica, part}.name();
  };
  network.fault = [this](const Error& error) { lose(error); };
  network.on_tick = [this](gossip::Time counted) { group_.exchange().on_tick(counted); };
  return network;
}

Status ReplicaNetwork::join() {
  if (const Status joined = network_->join(); !joined.ok())
    return of_replica("is not whole", joined.error());
  if (network_->late())
    return Error{ErrorKind::rejected,
                 fmt::format("worker {}: the others of replica {} train already, and no worker "
                             "joins them; end them, and start all workers of the run again",
                             request_.worker.name(), request_.worker.replica)};
  const int part = request_.worker.part;
  for (const auto& [here, there] : pairs_of(algorithm_, *all_pairs_, {part}))
    group_.exchange().connect(here, there, network_->link(here, there));
  gossip::FaultReporter& faults = group_.exchange().faults();
  faults.on_protocol_violation = [this](int here, int there, const Error& why) {
    network_->end_link(here, there, net::Network::Blame::violation, why);
  };
  gossip::Node& node = group_.engine(part).node();
  request_.links->connect([this, &node] {
    scheduler_.post_external([&node] { node.endpoint().messenger().notify(); });
  });
  group_.engine(part).begin_at(0);
  group_.engine(part).start();
  agreement_ = algorithm_.agree(node, [this, part](int from, const Error& why) {
    network_->end_link(part, from, net::Network::Blame::violation, why);
  });
  agreement_.start(scheduler_);
  network_->release_chunks();
  thread_ = std::thread([this] { serve(); });
  return {};
}

void ReplicaNetwork::serve() {
  try {
    scheduler_.run();
  } catch (const std::exception& failure) {  // memory
    lose({ErrorKind::internal,
          fmt::format("worker {} failed: {}", request_.worker.name(), failure.what())});
  }
}

void ReplicaNetwork::finished(gossip::PeerEngine&) { scheduler_.stop(); }

/// An error of the network of workers, in terms of the run.
Error ReplicaNetwork::of_replica(const char* what, const Error& error) {
  const WorkerPlace& worker = request_.worker;
  if (error.kind == ErrorKind::diverged)
    return {error.kind,
            fmt::format("worker {}: replica {} diverged: what its workers exchange is no longer "
                        "finite, or beyond {:g}; {}",
                        worker.name(), worker.replica, group_.exchange().options().largest_value,
                        setup_.workload->spec().divergence_advice)};
  return {error.kind, fmt::format("worker {}: replica {} {}: {}", worker.name(), worker.replica,
                                  what, error.message)};
}

void ReplicaNetwork::lose(const Error& error) {
  if (!lost_) lost_ = error;
  request_.links->close(of_replica(kNoLongerWhole, *lost_).message);
  scheduler_.stop();
}

Status ReplicaNetwork::leave(const Status& status) {
  if (!thread_.joinable()) return status;
  if (status.ok()) request_.links->finish();
  else scheduler_.post_external([this] { scheduler_.stop(); });
  thread_.join();
  // What ends here may set lost_ too.
  const std::optional<Error> lost = lost_;
  if (lost) network_->abort(*lost);
  else if (!status.ok())
    network_->abort({status.error().kind, fmt::format("worker {} ended: {}", request_.worker.name(),
                                                      status.error().message)});
  network_->leave();
  return lost ? Status(of_replica(kNoLongerWhole, *lost)) : status;
}

}  // namespace gossamer::peer
