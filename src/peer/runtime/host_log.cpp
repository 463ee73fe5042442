#include "peer/runtime/host_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/id_list.hpp"
#include "peer/log/topology_json.hpp"

namespace gossamer::peer {

HostLog::HostLog(const Setup& setup, const gossip::Scheduler& scheduler, Recorder& recorder,
                 const std::vector<int>& hosted,
                 const std::function<gossip::NodeModel(int node)>& ports,
                 RemoteTraffic remote_traffic, OnFault on_fault)
    : setup_(setup),
      scheduler_(scheduler),
      recorder_(recorder),
      remote_traffic_(std::move(remote_traffic)),
      on_fault_(std::move(on_fault)),
      participants_(setup.schedule->participants().at(0).peers) {
  for (const int node : hosted) {
    ports_[node] = gossip::SimulatedPort(ports(node));
    counted_[node] = {};
  }
}

void HostLog::restore(int node, const NodeMetrics& metrics) {
  counted_.at(node) = metrics;
  ports_.at(node).traffic = metrics.traffic;
}

void HostLog::start(gossip::Time clock_begin) {
  clock_begin_ = clock_begin;
  started_ = true;
  for (MembershipMetrics& metrics : std::exchange(early_, {})) record(std::move(metrics));
}

void HostLog::skip_steps_of_donor(gossip::PeerEngine& engine) {
  counted_.at(engine.id()).steps_recorded = engine.node().steps_done();
}

NodeMetrics HostLog::metrics_of(gossip::PeerEngine& engine) {
  gossip::Node& node = engine.node();
  NodeMetrics& before = counted_.at(node.id());
  const gossip::Staleness staleness = node.take_staleness();
  before.staleness.pushes += staleness.pushes;
  before.staleness.sum += staleness.sum;
  before.staleness.largest = std::max(before.staleness.largest, staleness.largest);
  NodeMetrics metrics = before;
  metrics.time = clock_begin_ + scheduler_.now();
  metrics.traffic = traffic_of(node.id());
  metrics.times = node.times();
  metrics.mix_seconds += node.endpoint().mix_seconds();
  return metrics;
}

double HostLog::wall_seconds() const {
  return seconds_with_earlier(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count());
}

double HostLog::seconds() const {
  return std::chrono::duration<double>(clock_begin_ + scheduler_.now()).count();
}

gossip::task<void> HostLog::record(gossip::PeerEngine& engine) {
  gossip::Node& node = engine.node();
  // Waiting for the device costs nothing here: the record reads its results anyway.
  if (Status checked = node.endpoint().flush_checks(); !checked.ok()) {
    on_fault_(with_advice(setup_, checked.error()));
    co_return;
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  NodeMetrics counted = metrics_of(engine);
  NodeMetrics& before = counted_.at(node.id());
  RoundMetrics metrics;
  metrics.round = engine.round();
  metrics.peer = node.id();
  metrics.seconds = std::chrono::duration<double>(counted.time).count();
  metrics.train_loss = kNone;
  metrics.trained = setup_.trains() && !node.is_server() &&
                    node.steps_done() > std::exchange(before.steps_recorded, node.steps_done());
  if (metrics.trained) {
    const std::optional<double> loss = co_await node.take_train_loss();
    metrics.trained = loss.has_value();
    metrics.train_loss = loss.value_or(kNone);
  }
  metrics.traffic = counted.traffic;
  metrics.times = counted.times;
  metrics.mix_seconds = counted.mix_seconds;
  metrics.staleness = counted.staleness;
  before.staleness = {};
  metrics.test = {kNone, kNone};
  bool evaluated = setup_.workload->spec().evaluates && setup_.holds_model(node.id()) &&
                   setup_.is_current(node.id(), metrics.round);
  if (evaluated) {
    const auto evaluation = co_await node.evaluate();
    evaluated = evaluation.has_value();
    if (evaluation) metrics.test = *evaluation;
  }
  metrics.row = node.x();
  if (Status status = recorder_.round(metrics); !status.ok()) {
    on_fault_(status.error());
    co_return;
  }
  check_finite(metrics, evaluated, node.is_server());
}

void HostLog::check_finite(const RoundMetrics& metrics, bool evaluated, bool is_server) {
  // With private gradients, a run that ends because of a loss would tell of a sample. Rows are
  // checked before they are sent.
  if (setup_.workload->spec().privacy) return;
  const bool in_training = metrics.trained && !std::isfinite(metrics.train_loss);
  const bool in_test = evaluated && !std::isfinite(metrics.test.loss);
  if ((!in_training && !in_test) || metrics.round == 0) return;
  on_fault_(with_advice(setup_,
                        {ErrorKind::diverged,
                         fmt::format("{} {} diverged: by round {} its {} loss was no longer finite",
                                     is_server ? "server" : "peer", metrics.peer, metrics.round,
                                     in_training ? "training" : "test")}));
}

bool HostLog::record_deviations(gossip::PeerEngine& engine) {
  auto deviations = engine.node().endpoint().take_deviations();
  if (deviations.empty()) return true;
  const Status status = recorder_.deviations({engine.round(), engine.id(), std::move(deviations)});
  if (!status.ok()) on_fault_(status.error());
  return status.ok();
}

void HostLog::record(int node, const gossip::Membership::Event& change) {
  using enum gossip::Membership::Event::Kind;
  MembershipMetrics metrics{change.round,
                            node,
                            0,
                            change.kind == link_lost       ? "link_lost"
                            : change.kind == link_restored ? "link_restored"
                                                           : "reachable",
                            {},
                            {},
                            change.cause};
  (change.kind == reachability ? metrics.reachable_peers : metrics.neighbour) = change.value;
  record(std::move(metrics));
}

void HostLog::record_route(gossip::PeerEngine& engine, int neighbour, const net::Route& route) {
  MembershipMetrics metrics{engine.round(), engine.id(), 0, "link_routed", neighbour, {}};
  metrics.route = route;
  record(std::move(metrics));
}

void HostLog::record_participants(gossip::PeerEngine& engine,
                                  const topology::ChangingSchedule& schedule, gossip::Round first) {
  const topology::Participants& participants = schedule.participants();
  const std::size_t index = participants.index_at(engine.round());
  const topology::ParticipantChange& change = participants.changes()[index];
  if (change.peers == participants_) return;
  participants_ = change.peers;
  const topology::MixingSchedule& part = *schedule.parts()[index];
  const auto report = setup_.examine(part);
  if (!report.ok()) return on_fault_(report.error());
  MembershipMetrics metrics{std::max(change.first, first), engine.id(), 0, "participants", {}, {}};
  metrics.participants = ids_text(change.peers);
  metrics.topology = participants_topology(part, change.peers, *report);
  record(std::move(metrics));
}

void HostLog::record(MembershipMetrics metrics) {
  if (!started_) return early_.push_back(std::move(metrics));
  metrics.seconds = seconds();
  if (const Status written = recorder_.membership(metrics); !written.ok())
    on_fault_(written.error());
}

gossip::ByteCounters HostLog::traffic_of(int node) const {
  gossip::ByteCounters traffic = remote_traffic_(node);
  traffic.bytes_sent += ports_.at(node).traffic.bytes_sent;
  traffic.bytes_received += ports_.at(node).traffic.bytes_received;
  return traffic;
}

std::uint64_t HostLog::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const auto& [node, port] : ports_) bytes += traffic_of(node).bytes_sent;
  return bytes;
}

Error with_advice(const Setup& setup, Error error) {
  const std::string& advice = setup.workload->spec().divergence_advice;
  if (error.kind == ErrorKind::diverged && !advice.empty()) error.message += "; " + advice;
  return error;
}

}  // namespace gossamer::peer
