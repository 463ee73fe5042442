#include "peer/runtime/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gossamer::peer {
namespace {

gossip::Policy policy_of(const std::string& name) {
  if (name == "deadline") return gossip::Policy::deadline;
  if (name == "stale") return gossip::Policy::stale;
  return name == "async" ? gossip::Policy::async : gossip::Policy::sync;
}

gossip::ExchangeOptions exchange_options(const Setup& setup,
                                         const std::vector<gossip::RowSpec>& specs,
                                         std::function<int(int peer)> gpu_of) {
  gossip::ExchangeOptions options;
  options.policy = policy_of(setup.config.exchange.policy);
  options.staleness = static_cast<gossip::Round>(setup.config.exchange.staleness);
  options.slack = setup.config.exchange.slack;
  options.chunk_values =
      static_cast<std::size_t>(setup.config.net.chunk_kib) * 1024 / sizeof(float);
  options.channels = gossip::channels_of(specs);
  options.row_lengths = gossip::row_lengths(specs, setup.parameters);
  options.keeps_sum = gossip::rows_that_keep_sums(specs);
  options.gpu_of = std::move(gpu_of);
  options.codec = setup.codec.get();
  options.seed = setup.config.run.seed;
  options.rounds = setup.config.run.rounds;
  options.largest_value = static_cast<float>(setup.config.exchange.largest_value);
  return options;
}

gossip::StepTimes step_times(const Setup& setup) {
  const SimOptions& sim = setup.config.sim;
  return {gossip::from_milliseconds(setup.step_ms()),
          sim.slow_peers,
          sim.slow_factor,
          {.width = sim.compute_spread},
          setup.config.run.seed};
}

}  // namespace

Host::Host(const Setup& setup, gossip::Scheduler& scheduler, gossip::Executor& executor,
           Recorder& recorder, HostRequest request)
    : setup_(setup),
      scheduler_(scheduler),
      executor_(executor),
      recorder_(recorder),
      request_(std::move(request)),
      specs_(setup.algorithm->rows(*setup.schedule)),
      compute_(scheduler, executor, *setup.device, setup.trainer.get(), step_times(setup)),
      rounds_(*setup.schedule),
      exchange_(scheduler, compute_, rounds_,
                exchange_options(setup, specs_, [this](int peer) { return gpu_of(peer); }),
                request_.hosted, [this](Error error) { fail(with_advice(std::move(error))); }) {
  const std::size_t count = request_.hosted.size(), d = setup.parameters;
  const auto rows = [&](std::size_t peers, std::size_t length) {
    return gpu::DeviceRows<float>(*setup.device, peers, length, request_.row_offset);
  };
  for (const gossip::RowSpec& spec : specs_) fronts_.push_back(rows(count, spec.length(d)));
  set_initial_rows();  // before the other rows: its copy of one then adds nothing to the peak
  for (const gossip::RowSpec& spec : specs_)
    backs_.push_back(rows(spec.mixed ? count : 0, spec.length(d)));
  if (setup.trainer) {
    gradients_ = rows(count, d);
    for (std::size_t k = 0; k < setup.config.optimizer.rule.state_rows(); ++k)
      states_.push_back(rows(count, d));
  }
  members_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int id = request_.hosted[i];
    ports_[id] = gossip::SimulatedPort(request_.ports);
    nodes_.push_back(std::make_unique<gossip::Node>(exchange_, id, setup.config.run.peers, specs_,
                                                    memory_of(i)));
    members_[i].node = nodes_.back().get();
  }
  exchange_.connect_hosted(
      [this](int from, int to) -> gossip::Link& { return make_link(from, to); });
  // Where all are in this process nobody can be lost, and on a random graph everybody's partners
  // are everybody.
  if (setup.tolerates_peer_loss() && count < static_cast<std::size_t>(setup.nodes()))
    watch_members();
}

Host::~Host() = default;

void Host::watch_members() {
  auto partners = std::make_shared<std::vector<std::vector<int>>>();
  for (int node = 0; node < setup_.nodes(); ++node)
    partners->push_back(setup_.algorithm->partners(node, *setup_.schedule));
  for (Member& member : members_) {
    gossip::Membership::Plan plan{partners, request_.message, {}};
    plan.on_change = [this, here = member.node->id()](const gossip::Membership::Change& change) {
      log_change(here, change);
    };
    member.membership =
        std::make_unique<gossip::Membership>(exchange_, *member.node, std::move(plan));
  }
}

void Host::log_change(int here, const gossip::Membership::Change& change) {
  using enum gossip::Membership::Change::Kind;
  MembershipMetrics figures{
      change.round, here, 0, change.kind == lost ? "lost" : change.kind == back ? "back" : "reach",
      {},           {}};
  (change.kind == reach ? figures.within_reach : figures.of) = change.value;
  log_membership(figures);
}

/// A log goes on where its process starts.
void Host::log_membership(MembershipMetrics figures) {
  if (!started_) return early_.push_back(std::move(figures));
  figures.seconds = std::chrono::duration<double>(clock_begin_ + scheduler_.now()).count();
  if (const Status written = recorder_.membership(figures); !written.ok()) fail(written.error());
}

gossip::Membership& Host::membership(int node) {
  const auto member =
      std::ranges::find(members_, node, [](const Member& m) { return m.node->id(); });
  GOSSAMER_CHECK(member != members_.end() && member->membership, "a loss that is not borne");
  return *member->membership;
}

void Host::lose(int here, int there, const Error& why) {
  membership(here).lost(there, why.message);
}

void Host::back(int here, int there) { membership(here).back(there); }

void Host::left(int here, int there) { membership(here).left(there); }

/// Partners that did not leave call at least every second: if none is there after a silence, nobody
/// can give this node rows. Those that are there may wait for rows themselves, for a round of
/// somebody else, or for ever.
void Host::look_for_givers(Member& member) {
  using Help = gossip::Membership::Help;
  const Help help = member.membership->help();
  if (error_ || help == Help::needed_no_more) return;
  const gossip::Time now = scheduler_.now(),
                     failure_timeout = gossip::from_seconds(setup_.config.net.failure_timeout);
  const auto waited = [now](bool waits, std::optional<gossip::Time>& since) {
    if (!waits) since.reset();
    else if (!since) since = now;
    return since ? now - *since : gossip::Time(0);
  };
  if (waited(help == Help::nobody, member.alone_since) >= failure_timeout)
    return fail({ErrorKind::join_timeout, fmt::format("peer {} came too late: whoever it could ask "
                                                      "for rows has done its last round and left",
                                                      member.node->id())});
  if (waited(help != Help::asked, member.helpless_since) >=
      gossip::from_seconds(setup_.config.net.join_timeout))
    return fail({ErrorKind::join_timeout,
                 fmt::format("peer {} joins nothing: for {:g} s all that it reaches wait for rows "
                             "themselves; stop all processes, and start "
                             "them again together, with --resume auto",
                             member.node->id(), setup_.config.net.join_timeout)});
  scheduler_.after(failure_timeout / 4, [this, &member] { look_for_givers(member); });
}

void Host::join(const std::vector<std::pair<int, int>>& connected) {
  started_ = true;
  for (Member& member : members_) member.membership->join();
  for (const auto& [here, there] : connected) membership(here).back(there);
  for (const int here : request_.hosted)
    for (const int there : setup_.algorithm->partners(here, *setup_.schedule))
      if (std::ranges::binary_search(request_.hosted, there)) membership(here).back(there);
  for (Member& member : members_) {
    member.driver = await_admission(member);
    member.driver.start(scheduler_);
    look_for_givers(member);
  }
}

gossip::task<void> Host::await_admission(Member& member) {
  member.round = co_await member.membership->await_admission();
  member.before.steps_recorded = member.node->steps_done();  // those were another peer's
  if (!std::exchange(arrived_, true)) {
    first_round_ = member.round;
    if (Status ready = request_.on_arrival(member.round); !ready.ok()) {
      fail(ready.error());
      co_return;
    }
  }
  const auto reachable = static_cast<int>(member.membership->reachable().size());
  log_membership({member.round, member.node->id(), 0, "joined", std::nullopt, reachable});
  if (error_) co_return;
  co_await drive(member);
}

void Host::set_initial_rows() {
  std::vector<float> initial(setup_.parameters);
  for (std::size_t i = 0; i < request_.hosted.size(); ++i)
    for (std::size_t k = 0; k < specs_.size(); ++k) {
      const std::vector<float> extra(specs_[k].extra, specs_[k].extra_start);
      const std::span<float> row = fronts_[k].row(i);
      setup_.device->upload(row.data() + row.size() - extra.size(), extra.data(),
                            extra.size() * sizeof(float));
      if (specs_[k].initial != gossip::RowSpec::Initial::parameters) continue;
      setup_.initialise(request_.hosted[i], initial);
      setup_.device->upload(fronts_[k].row(i).data(), initial.data(),
                            initial.size() * sizeof(float));
    }
}

gossip::NodeMemory Host::memory_of(std::size_t index) {
  gossip::NodeMemory memory;
  for (std::size_t k = 0; k < specs_.size(); ++k) {
    memory.front.push_back(fronts_[k].row(index));
    memory.back.push_back(specs_[k].mixed ? backs_[k].row(index) : std::span<float>());
  }
  if (gradients_.count() > 0) memory.gradient = gradients_.row(index);
  for (auto& rows : states_) memory.state.push_back(rows.row(index));
  memory.counters = setup_.algorithm->counters(request_.hosted[index], *setup_.schedule);
  return memory;
}

int Host::gpu_of(int node) const {
  const auto found = std::ranges::lower_bound(request_.hosted, node);
  if (found == request_.hosted.end() || *found != node) return 0;
  return setup_.device->gpu_of(
      fronts_.front().row(static_cast<std::size_t>(found - request_.hosted.begin())).data());
}

gossip::Link& Host::make_link(int from, int to) {
  links_.push_back(std::make_unique<gossip::SimulatedLink>(
      scheduler_, exchange_, request_.local_links(from, to), ports_.at(from), ports_.at(to),
      [this](Error error) { fail(std::move(error)); }));
  return *links_.back();
}

void Host::begin_at(gossip::Round round, const std::vector<std::pair<int, int>>& joiners) {
  for (Member& member : members_) member.node->endpoint().begin_at(round);
  for (const auto& [here, there] : joiners)
    lose(
        here, there,
        {ErrorKind::lost_peer, fmt::format("peer {} has no checkpoint of round {}", there, round)});
}

void Host::start(Clock clock) {
  // Those of a network are at their rounds since begin_at(); begun twice is begun once.
  for (Member& member : members_) member.node->endpoint().begin_at(member.round);
  std::vector<gossip::Time> times;
  for (const Member& member : members_) times.push_back(member.before.time);
  clock_begin_ = clock == Clock::virtual_time ? std::ranges::min(times) : std::ranges::max(times);
  started_ = true;
  for (MembershipMetrics& figures : std::exchange(early_, {})) log_membership(std::move(figures));
  for (Member& member : members_) {
    member.driver = drive(member);
    const gossip::Time wait = member.before.time - clock_begin_;
    if (wait > gossip::Time(0))
      scheduler_.after(wait, [this, &member] { member.driver.start(scheduler_); });
    else member.driver.start(scheduler_);
  }
}

gossip::task<void> Host::drive(Member& member) {
  if (std::exchange(member.begins_again, false)) co_await member.node->restart_rows();
  if (is_logged(setup_.config, member.round)) co_await record(member);
  while (member.round < setup_.config.run.rounds &&
         member.round < stop_after_.value_or(setup_.config.run.rounds)) {
    member.in_round = true;
    if (member.membership) co_await member.membership->begin_round(member.round);
    co_await setup_.algorithm->round(*member.node, member.round);
    check_interrupt();
    member.in_round = false;
    if (auto deviations = member.node->endpoint().take_deviations(); !deviations.empty())
      if (Status status =
              recorder_.deviations({member.round, member.node->id(), std::move(deviations)});
          !status.ok())
        co_return fail(status.error());
    const gossip::Round last = stop_after_.value_or(setup_.config.run.rounds);
    // A peer that leaves rounds out stands in all of them as it stands now.
    for (const gossip::Round next = member.node->endpoint().next_round(member.round, last);
         member.round < next;) {
      ++member.round;
      // The checkpoint first: a run that goes on from it writes the record again.
      if (request_.checkpointer &&
          (request_.checkpointer->due(member.round) || member.round == stop_after_))
        co_await save(member);
      if (is_logged(setup_.config, member.round) || member.round == stop_after_)
        co_await record(member);
    }
  }
  co_await member.node->endpoint().send_rest();
  co_await setup_.algorithm->drain(*member.node);
  if (++finished_ == members_.size()) request_.on_finished();
}

gossip::task<void> Host::record(Member& member) {
  gossip::Node& node = *member.node;
  if (Status settled = node.endpoint().flush_checks();
      !settled.ok()) {  // the host waits here anyway
    fail(with_advice(settled.error()));
    co_return;
  }
  NodeMetrics counted = metrics_of(member);
  RoundMetrics figures;
  figures.round = member.round;
  figures.peer = node.id();
  figures.seconds = std::chrono::duration<double>(counted.time).count();
  figures.train_loss = std::numeric_limits<double>::quiet_NaN();
  figures.trained =
      setup_.trainer && !node.is_server() &&
      node.steps_done() > std::exchange(member.before.steps_recorded, node.steps_done());
  if (figures.trained) figures.train_loss = co_await node.take_train_loss();
  figures.traffic = counted.traffic;
  figures.times = counted.times;
  figures.mix_seconds = counted.mix_seconds;
  figures.staleness = counted.staleness;
  member.before.staleness = {};
  figures.test = {std::numeric_limits<double>::quiet_NaN(),
                  std::numeric_limits<double>::quiet_NaN()};
  const bool evaluated = setup_.trainer && setup_.holds_model(node.id());
  if (evaluated) figures.test = co_await node.evaluate();
  figures.row = node.x();
  if (Status status = recorder_.round(figures); !status.ok()) {
    fail(status.error());
    co_return;
  }
  const bool lost = (figures.trained && !std::isfinite(figures.train_loss)) ||
                    (evaluated && !std::isfinite(figures.test.loss));
  if (lost && member.round > 0)
    fail(with_advice({ErrorKind::diverged,
                      fmt::format("{} {} diverged: by round {} its loss was no longer finite",
                                  node.is_server() ? "server" : "peer", node.id(), member.round)}));
}

void Host::check_interrupt() {
  if (stop_after_ || !request_.interrupted()) return;
  // Everybody ends after the furthest round that anybody has begun: all that it needs of others is
  // still going to be sent.
  gossip::Round furthest = 0;
  for (const Member& member : members_)
    furthest = std::max(furthest, member.round + (member.in_round ? 1 : 0));
  stop_after_ = furthest;
}

Error Host::with_advice(Error error) const {
  if (error.kind == ErrorKind::diverged && setup_.trainer)
    error.message += fmt::format("; a smaller optimizer.rate than {} is what usually helps",
                                 setup_.config.optimizer.rate);
  return error;
}

void Host::fail(Error error) {
  if (!error_) error_ = std::move(error);
  scheduler_.stop();
}

gossip::Round Host::rounds_done() const {
  gossip::Round least = setup_.config.run.rounds;
  for (const Member& member : members_) least = std::min(least, member.round);
  return least;
}

std::uint64_t Host::node_steps() const {
  // `centralized` takes one gradient of every peer's shard in each of its steps.
  const std::uint64_t gradients_a_step =
      setup_.algorithm->needs().one_node ? static_cast<std::uint64_t>(setup_.config.run.peers) : 1;
  std::uint64_t steps = 0;
  for (const Member& member : members_)
    if (!member.node->is_server()) steps += member.node->steps_done() * gradients_a_step;
  return steps;
}

gossip::Traffic Host::traffic_of(int peer) const {
  gossip::Traffic traffic = request_.remote_traffic(peer);
  traffic.bytes_sent += ports_.at(peer).traffic.bytes_sent;
  traffic.bytes_received += ports_.at(peer).traffic.bytes_received;
  return traffic;
}

std::uint64_t Host::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const auto& [peer, port] : ports_) bytes += traffic_of(peer).bytes_sent;
  return bytes;
}

EndMetrics Host::end_metrics(double wall_seconds, const std::optional<Error>& stopped) const {
  EndMetrics end;
  end.rounds = rounds_done();
  end.seconds = std::chrono::duration<double>(clock_begin_ + scheduler_.now()).count();
  end.wall_seconds = wall_seconds_before_ + wall_seconds;
  end.node_steps = node_steps();
  end.bytes_sent = bytes_sent();
  if (stopped) {
    end.reason = reason_of(*stopped);
    end.message = stopped->message;
  }
  return end;
}

RowViews Host::parameter_rows() {
  RowViews rows;
  for (const auto& node : nodes_)
    if (setup_.holds_model(node->id())) rows.push_back(node->x());
  return rows;
}

}  // namespace gossamer::peer
