#include "peer/runtime/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "gossip/process/options.hpp"
#include "net/options.hpp"
#include "peer/setup/virtual_network.hpp"

namespace gossamer::peer {
namespace {

gossip::ExchangeOptions chosen_options(const Setup& setup) {
  gossip::ExchangeOptions options;
  options.policy = setup.config.exchange.kind();
  options.staleness = static_cast<gossip::Round>(setup.config.exchange.staleness);
  options.deadline_slack = setup.config.exchange.slack;
  options.chunk_values =
      static_cast<std::size_t>(setup.config.net.chunk_kib) * 1024 / sizeof(float);
  options.codec = setup.codec.get();
  options.rule = setup.rule.is_mean() ? nullptr : &setup.rule;
  options.attack = setup.attack.hostile.empty() ? nullptr : &setup.attack;
  options.seed = setup.config.run.seed;
  options.rounds = setup.config.run.rounds;
  options.row_limit = gossip::from_seconds(setup.config.net.row_timeout);
  options.largest_value = static_cast<float>(setup.config.exchange.largest_value);
  return options;
}

}  // namespace

Host::Host(const Setup& setup, gossip::Scheduler& scheduler, gossip::Executor& executor,
           Recorder& recorder, HostRequest request)
    : setup_(setup),
      scheduler_(scheduler),
      executor_(executor),
      request_(std::move(request)),
      log_(setup, scheduler, recorder, request_.hosted, request_.ports, request_.remote_traffic,
           [this](Error error) { fail(std::move(error)); }),
      compute_(scheduler, executor, *setup.device, setup.workload->trainer(), request_.step_times),
      changing_(setup.schedule->copy_if_open()),
      rounds_(changing_ ? *changing_ : *setup.schedule),
      group_(group_request(), *this,
             [this](Error error) { fail(with_advice(setup_, std::move(error))); }) {
  group_.connect_hosted([this](int from, int to) -> std::unique_ptr<gossip::Link> {
    auto link = std::make_unique<gossip::SimulatedLink>(
        scheduler_, group_.exchange(), request_.local_links(from, to), log_.port(from),
        log_.port(to), [this](Error error) { fail(std::move(error)); });
    if (request_.traffic == nullptr) return link;
    return request_.traffic->counted(from, to, std::move(link));
  });
  // A run whose nodes are all in this process loses none. There is no membership then: on a random
  // graph every node is a partner of every other.
  if (!setup.tolerates_peer_loss() ||
      request_.hosted.size() == static_cast<std::size_t>(setup.nodes()))
    return;
  const auto partners =
      gossip::partners_of_all(*setup_.algorithm, *setup_.schedule, setup_.nodes());
  group_.tolerate_loss([this, &partners](int node) {
    gossip::Membership::Options options{partners, request_.message, {}};
    options.on_event = [this, node](const gossip::Membership::Event& event) {
      log_.record(node, event);
    };
    options.changing = changing_.get();
    return options;
  });
}

gossip::GroupRequest Host::group_request() {
  gossip::GroupRequest request{scheduler_, compute_,          *setup_.device,
                               rounds_,    *setup_.algorithm, chosen_options(setup_)};
  request.hosted = request_.hosted;
  request.engine.peers = setup_.config.run.peers;
  request.engine.rounds = setup_.config.run.rounds;
  if (request_.checkpointer != nullptr)
    request.engine.save_every = static_cast<gossip::Round>(setup_.config.checkpoint.every);
  request.layout.length = setup_.parameters;
  request.layout.gradient = setup_.trains();
  request.layout.state_rows = setup_.workload->spec().optimizer_rows.size();
  request.layout.row_offset = request_.row_offset;
  request.initialise = [this](int node, std::span<float> parameters) {
    setup_.workload->initialise(node, parameters);
  };
  return request;
}

std::set<std::pair<int, int>> Host::links_lost_elsewhere() const {
  std::set<std::pair<int, int>> lost;
  for (const auto& engine : group_.engines()) {
    if (!engine->tolerates_loss()) continue;
    for (const auto& [end, version] : engine->membership().flooding().table().versions())
      if (gossip::is_lost(version) && !group_.hosts(end.first)) lost.insert(end);
  }
  return lost;
}

void Host::begin_at(gossip::Round round, const std::vector<std::pair<int, int>>& joiners) {
  for (const auto& engine : group_.engines()) engine->begin_at(round);
  for (const auto& [here, there] : joiners)
    group_.engine(here).membership().on_link_lost(
        there, fmt::format("peer {} has no checkpoint of round {}", there, round));
}

void Host::start(Clock clock) {
  // The nodes of a network are at their round since begin_at(), which may be called again.
  for (const auto& engine : group_.engines()) engine->begin_at(engine->round());
  std::vector<gossip::Time> times;
  for (const int node : request_.hosted) times.push_back(log_.time_of(node));
  const gossip::Time begin =
      clock == Clock::virtual_time ? std::ranges::min(times) : std::ranges::max(times);
  log_.start(begin);
  for (const auto& engine : group_.engines()) {
    const gossip::Time wait = log_.time_of(engine->id()) - begin;
    if (wait > gossip::Time(0)) scheduler_.after(wait, [&engine = *engine] { engine.start(); });
    else engine->start();
  }
}

void Host::join(const std::vector<std::pair<int, int>>& connected) {
  arrives_ = true;
  log_.start(gossip::Time(0));
  group_.join(connected);
  for (const auto& engine : group_.engines()) {
    engine->start();
    on_part(*engine, Part::lost_donor);
  }
}

void Host::on_part(gossip::PeerEngine& engine, Part part) {
  if (part == Part::begins) return log_.skip_steps_of_donor(engine);
  if (!engine.tolerates_loss() || part == Part::gives_up) return;
  watches_
      .emplace_back(std::make_unique<JoinWatch>(
          scheduler_, engine, setup_.config.net.failure_timeout, setup_.config.net.join_timeout,
          [this](Error error) { fail(std::move(error)); }))
      ->start();
}

bool Host::joined(gossip::PeerEngine& engine) {
  // The other workers of a replica have other donors, some of which may have left rounds out.
  if (setup_.part)
    engine.node().set_steps_done(engine.round() * setup_.steps_per_round(engine.id()));
  log_.skip_steps_of_donor(engine);
  if (std::exchange(arrives_, false)) {
    first_round_ = engine.round();
    if (Status ready = request_.on_arrival(engine.round()); !ready.ok()) {
      fail(ready.error());
      return false;
    }
  }
  const auto reachable =
      static_cast<int>(engine.membership().flooding().table().reachable().size());
  log_.record({engine.round(), engine.id(), 0, "joined", std::nullopt, reachable, {}});
  return !error_;
}

void Host::before_round(gossip::PeerEngine& engine, bool) {
  if (changing_) log_.record_participants(engine, *changing_, first_round_);
}

bool Host::after_round(gossip::PeerEngine& engine) {
  if (const PrivacyAccount* account = setup_.workload->privacy_account();
      account != nullptr && account->failed()) {
    fail(account->status().error());
    return false;
  }
  if (!group_.stops_after() && request_.interrupted()) group_.interrupt();
  return log_.record_deviations(engine);
}

gossip::task<void> Host::completed(gossip::PeerEngine& engine) {
  if (is_logged(setup_.config, engine.round()) || engine.stops_here()) return log_.record(engine);
  return {};
}

void Host::finished(gossip::PeerEngine&) {
  if (group_.finished()) request_.on_finished();
}

void Host::fail(Error error) {
  if (!error_) error_ = std::move(error);
  scheduler_.stop();
}

std::uint64_t Host::node_steps() const {
  // `centralized` takes one gradient of every peer's shard in each of its steps.
  const std::uint64_t gradients_a_step = setup_.algorithm->requirements().one_node
                                             ? static_cast<std::uint64_t>(setup_.config.run.peers)
                                             : 1;
  std::uint64_t steps = 0;
  for (const auto& engine : group_.engines())
    if (!setup_.is_server(engine->id()))
      steps += (engine->node().steps_done() - engine->participation().steps_left_out()) *
               gradients_a_step;
  return steps;
}

EndMetrics Host::end_metrics(double wall_seconds, const std::optional<Error>& stopped) const {
  EndMetrics end;
  end.rounds = group_.rounds_done() - std::min(group_.rounds_done(), group_.rounds_left_out());
  end.seconds = log_.seconds();
  end.wall_seconds = log_.seconds_with_earlier(wall_seconds);
  end.node_steps = node_steps();
  end.bytes_sent = log_.bytes_sent();
  if (changing_ && !stopped)
    if (const auto left = changing_->participants().end_of(request_.hosted.front());
        left && *left < setup_.config.run.rounds) {
      end.reason = kLeft;
      end.rounds = *left;
    }
  if (stopped) {
    end.reason = end_reason(*stopped);
    end.message = stopped->message;
  }
  return end;
}

RowViews Host::parameter_rows() {
  RowViews rows;
  for (const auto& engine : group_.engines())
    if (setup_.holds_model(engine->id())) rows.push_back(engine->node().x());
  return rows;
}

}  // namespace gossamer::peer
