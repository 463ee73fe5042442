#include "peer/probe/prober.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "peer/probe/tournament.hpp"

namespace gossamer::peer {

using gossip::task;
using gossip::Time;

namespace {

constexpr gossip::Round kOnlyRound = 0;
constexpr int kUncountedEchoes = 2;  // the follower may not be ready, and caches are cold
constexpr int kLeastEchoes = 20, kMostEchoes = 200;
constexpr double kEchoSeconds = 0.5, kMostEchoSeconds = 5;

double mbit_s(TransferSize size, double seconds) {
  return seconds > 0 ? size.bits() / seconds / 1e6 : 0;
}

bool is_duration(float seconds) { return seconds >= 0 && seconds <= 1e6F; }

}  // namespace

Prober::Prober(const gossip::Scheduler& scheduler, gossip::Node& node, const ProbePlan& plan)
    : scheduler_(scheduler),
      node_(node),
      plan_(plan),
      index_(static_cast<std::size_t>(std::ranges::lower_bound(plan.processes, node.id()) -
                                      plan.processes.begin())),
      own_(plan.processes.size()) {}

task<std::vector<ProcessMeasurement>> Prober::run(StepEstimate steps) {
  own_.steps = steps;
  co_await measure_pairs();
  co_await measure_nodes();
  std::vector<ProcessMeasurement> all = co_await gather();
  co_return all;
}

task<void> Prober::measure_pairs() {
  const Directions both{true, true};
  const auto processes = static_cast<int>(plan_.processes.size());
  for (int round = 0; round < tournament_rounds(processes); ++round) {
    const std::optional<int> other = opponent(processes, round, static_cast<int>(index_));
    if (!other) continue;
    const auto p = static_cast<std::size_t>(*other);
    const int partner = plan_.processes[p];
    if (p < index_) {
      co_await follow_echoes(partner);
      co_await follow_transfers(partner, both);
      continue;
    }
    ProcessMeasurement::Pair& pair = own_.links[p];
    pair.latency = co_await lead_echoes(partner);
    const std::vector<int> followers(1, partner);
    const Rates rates = co_await lead_transfers(followers, both);
    pair.sent_mbit_s = rates.sent.front();
    pair.received_mbit_s = rates.received.front();
  }
}

task<void> Prober::measure_nodes() {
  const Directions out{true, false}, in{false, true};
  for (const int leader : plan_.processes) {
    if (leader != node_.id()) {
      co_await follow_transfers(leader, out);
      co_await follow_transfers(leader, in);
      continue;
    }
    std::vector<int> others = plan_.processes;
    std::erase(others, leader);
    const Rates up = co_await lead_transfers(others, out);
    own_.uplink_mbit_s = std::accumulate(up.sent.begin(), up.sent.end(), 0.0);
    const Rates down = co_await lead_transfers(others, in);
    own_.downlink_mbit_s = std::accumulate(down.received.begin(), down.received.end(), 0.0);
  }
}

task<std::vector<ProcessMeasurement>> Prober::gather() {
  std::vector<ProcessMeasurement> all;
  if (index_ != 0) {
    const std::vector<float> values = own_.values();
    node_.send_copy(plan_.processes.front(), kOnlyRound, kNumberRow, values);
    co_return all;
  }
  all.push_back(own_);
  std::vector<float> values(ProcessMeasurement::message_length(plan_.processes.size()));
  for (std::size_t p = 1; p < plan_.processes.size(); ++p) {
    const int peer = plan_.processes[p];
    const std::span<float> into(values);
    co_await node_.receive(peer, kOnlyRound, kNumberRow, into, gossip::Combine::replace);
    std::optional<ProcessMeasurement> measured = ProcessMeasurement::of(values);
    if (!measured) co_await reject(peer, "measurements that none can have");
    all.push_back(std::move(*measured));
  }
  co_return all;
}

// ---- latency

task<LatencyEstimate> Prober::lead_echoes(int follower) {
  std::vector<double> round_trips;
  Time begin{0};
  for (int count = -kUncountedEchoes, last = 0; last == 0; ++count) {
    if (count == 0) begin = scheduler_.now();
    const double elapsed = count > 0 ? gossip::seconds(scheduler_.now() - begin) : 0;
    last = count + 1 == kMostEchoes || elapsed > kMostEchoSeconds ||
           (count + 1 >= kLeastEchoes && elapsed > kEchoSeconds);
    const Time sent = scheduler_.now();
    send_number(follower, last != 0 ? 0.0F : 1.0F);
    co_await receive_number(follower);
    if (count >= 0) round_trips.push_back(gossip::seconds(scheduler_.now() - sent));
  }
  co_return estimate_latency(std::move(round_trips));
}

task<void> Prober::follow_echoes(int leader) {
  for (;;) {
    const float more = co_await receive_number(leader);
    send_number(leader, more);
    if (more == 0) co_return;
  }
}

// ---- bandwidth

task<Prober::Rates> Prober::lead_transfers(const std::vector<int>& followers,
                                           Directions directions) {
  Rates rates(followers.size());
  for (const int follower : followers) co_await receive_number(follower);  // all are ready
  for (int step = 0; step < kTransferSteps; ++step) {
    const TransferSize size = transfer_size(step);
    for (const int follower : followers) send_number(follower, 1);
    if (directions.out) send_parts(followers, size);
    std::vector<double> durations;
    if (directions.in) {
      durations = co_await receive_parts(followers, size);
      for (std::size_t f = 0; f < followers.size(); ++f)
        rates.received[f] = mbit_s(size, durations[f]);
    }
    if (directions.out)
      for (std::size_t f = 0; f < followers.size(); ++f) {
        const float seconds = co_await receive_number(followers[f]);
        if (!is_duration(seconds)) co_await reject(followers[f], "a duration that is none");
        durations.push_back(seconds);
        rates.sent[f] = mbit_s(size, seconds);
      }
    if (is_long_enough(durations)) break;
  }
  for (const int follower : followers) send_number(follower, 0);
  co_return rates;
}

task<void> Prober::follow_transfers(int leader, Directions directions) {
  const std::vector<int> leaders(1, leader);
  send_number(leader, 1);
  for (int step = 0;; ++step) {
    const float more = co_await receive_number(leader);
    if (more == 0) co_return;
    if (step == kTransferSteps) co_await reject(leader, "more transfers than there are");
    const TransferSize size = transfer_size(step);
    if (directions.in) send_parts(leaders, size);
    if (!directions.out) continue;
    const std::vector<double> durations = co_await receive_parts(leaders, size);
    send_number(leader, static_cast<float>(durations.front()));
  }
}

/// Part by part, so that all receivers are served at once.
void Prober::send_parts(std::span<const int> to, TransferSize size) {
  const auto part = node_.row(kSourceRow).first(static_cast<std::size_t>(size.values));
  for (int k = 0; k < size.parts; ++k)
    for (const int receiver : to) node_.send(receiver, kOnlyRound, kSourceRow, part);
}

task<std::vector<double>> Prober::receive_parts(const std::vector<int>& from, TransferSize size) {
  const auto parts = static_cast<std::size_t>(size.parts);
  const auto sink = node_.row(kSinkRow).first(static_cast<std::size_t>(size.values));
  std::vector<std::vector<Time>> arrivals(from.size());
  const auto is_due = [&](const std::vector<Time>& each) { return each.size() < parts; };
  for (;;) {
    const auto due = std::ranges::find_if(arrivals, is_due);
    if (due == arrivals.end()) break;
    const auto origin = node_.peek_any(kSourceRow);
    if (!origin) {
      const std::optional<int> awaited(from[static_cast<std::size_t>(due - arrivals.begin())]);
      co_await node_.wait_event(awaited);
      continue;
    }
    const auto sender = std::ranges::find(from, origin->from);
    const auto at = static_cast<std::size_t>(sender - from.begin());
    if (sender == from.end() || !is_due(arrivals[at]))
      co_await reject(origin->from, "a transfer that was not asked for");
    co_await node_.receive(origin->from, kOnlyRound, kSourceRow, sink, gossip::Combine::replace);
    arrivals[at].push_back(scheduler_.now());
  }
  std::vector<double> durations;
  for (const std::vector<Time>& each : arrivals) durations.push_back(transfer_seconds(each));
  co_return durations;
}

// ---- single numbers

void Prober::send_number(int to, float number) {
  node_.send_copy(to, kOnlyRound, kNumberRow, std::span<const float>(&number, 1));
}

task<float> Prober::receive_number(int from) {
  float number = 0;
  const std::span<float> into(&number, 1);
  co_await node_.receive(from, kOnlyRound, kNumberRow, into, gossip::Combine::replace);
  co_return number;
}

task<void> Prober::reject(int peer, std::string what) {
  plan_.on_error({ErrorKind::lost_peer, fmt::format("peer {} sent {}", peer, what)});
  co_await std::suspend_always{};  // the run ends; this coroutine is destroyed
}

}  // namespace gossamer::peer
