#include "simulator/world/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gossamer::gossip::sim {

namespace {

FloatRow normal_row(const Scenario& scenario, int peer, std::uint64_t step) {
  RandomStream random(scenario.seed, static_cast<std::uint32_t>(peer), Purpose::scenario, step);
  FloatRow row(static_cast<std::size_t>(scenario.length));
  for (float& value : row) value = static_cast<float>(random.next_normal());
  return row;
}

FloatRow copy_of(std::span<const float> row) { return {row.begin(), row.end()}; }

}  // namespace

FloatRow target_of(const Scenario& scenario, int peer) { return normal_row(scenario, peer, 2); }
FloatRow start_of(const Scenario& scenario, int peer) { return normal_row(scenario, peer, 3); }

void RecordingTrainer::run(TrainOperation operation, std::span<TrainRequest* const> requests) {
  for (TrainRequest* request : requests) {
    FloatRow& target = targets_[request->shard_of];
    if (target.empty()) target = target_of(world_.scenario(), request->shard_of);
    Trained trained{operation, copy_of(request->x), {}, {}};
    const auto rate = static_cast<float>(world_.scenario().rate);
    for (int step = 0; step < request->steps; ++step)
      for (std::size_t k = 0; k < request->x.size(); ++k) {
        if (operation != TrainOperation::update) request->gradient[k] = request->x[k] - target[k];
        if (operation != TrainOperation::gradient) request->x[k] -= rate * request->gradient[k];
      }
    trained.gradient = copy_of(request->gradient.first(request->x.size()));
    trained.after = copy_of(request->x);
    world_.life(request->peer).rounds.back().trained.push_back(std::move(trained));
  }
}

struct Process::Place {
  Place(World& world, const std::vector<int>& hosted, const StepTimes& times, const Time& lead)
      : scheduler(world, lead),
        device(1),
        trainer(world),
        compute(scheduler, executor, device, &trainer, times),
        exchange(scheduler, compute, *world.parts().schedule, options_of(world), hosted,
                 [&world](Error error) { world.trace().complaints.push_back(error.message); }) {}

  static ExchangeOptions options_of(const World& world) {
    ExchangeOptions options;
    options.policy = world.parts().policy;
    options.staleness = static_cast<Round>(world.scenario().staleness);
    options.chunk_values = static_cast<std::size_t>(world.scenario().chunk_values);
    options.row_lengths =
        row_lengths(world.parts().rows, static_cast<std::size_t>(world.scenario().length));
    options.keeps_sum = rows_that_keep_sums(world.parts().rows);
    options.channels = channels_of(world.parts().rows);
    options.codec = world.parts().codec.get();
    options.seed = world.scenario().seed;
    options.rounds = static_cast<Round>(world.scenario().rounds);
    return options;
  }

  ProcessScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device;
  RecordingTrainer trainer;
  Compute compute;
  std::vector<Rows<float>> fronts, backs;
  Rows<float> gradients;
  SimulatedPort port;
  Exchange exchange;
  std::vector<std::unique_ptr<SimulatedLink>> links;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Membership>> memberships;
  std::vector<task<void>> drivers;
};

Process::Process(World& world, int number) : world_(world), number_(number) {
  const Scenario& scenario = world.scenario();
  for (int peer = 0; peer < scenario.peers; ++peer)
    if (scenario.homes[static_cast<std::size_t>(peer)] == number) hosted_.push_back(peer);
  times_ = {.each = from_milliseconds(scenario.step_ms),
            .spread = {.width = scenario.step_spread},
            .seed = scenario.seed};
  for (const Fault& fault : scenario.fault_list()) {
    if (fault.process != number) continue;
    if (fault.kind == FaultKind::slow)
      times_.each = Time(std::llround(static_cast<double>(times_.each.count()) * fault.amount));
    using enum FaultKind;
    for (const FaultKind kind : {restart, reboot, failed_write, torn_write, killed_write})
      keeps_ = keeps_ || fault.kind == kind;
  }
  place_ = std::make_unique<Place>(world, hosted_, times_, lead_);
}

Process::~Process() { end(); }

void Process::end() {
  if (!place_) return;
  // Chunks that wait between peers of this process lie in its nodes' rows.
  for (const int peer : hosted_) place_->exchange.endpoint(peer).drop_arrivals();
  place_.reset();
}

void Process::begin_again() {
  GOSSAMER_CHECK(!place_, "a process begins again that has not ended");
  paused_ = false;
  place_ = std::make_unique<Place>(world_, hosted_, times_, lead_);
  start(true);
}

void Process::start(bool joins) {
  const std::vector<RowSpec>& specs = world_.parts().rows;
  const auto length = static_cast<std::size_t>(world_.scenario().length);
  Place& place = *place_;
  for (const RowSpec& spec : specs) {
    place.fronts.emplace_back(hosted_.size(), spec.length(length));
    place.backs.emplace_back(spec.mixed ? hosted_.size() : 0, spec.length(length));
  }
  place.gradients = Rows<float>(hosted_.size(), length);
  const auto partners = std::make_shared<std::vector<std::vector<int>>>();
  for (int i = 0; i < world_.scenario().peers; ++i)
    partners->push_back(world_.parts().algorithm->partners(i, *world_.parts().schedule));
  place.exchange.connect_hosted([&place, this](int, int) -> Link& {
    place.links.push_back(std::make_unique<SimulatedLink>(
        place.scheduler, place.exchange, LinkModel{}, place.port, place.port,
        [this](Error error) { world_.trace().complaints.push_back(error.message); }));
    return *place.links.back();
  });
  const auto say = [this](int peer) {
    return [this, peer](const std::string& line) {
      world_.tell(fmt::format("peer {}: {}", peer, line));
    };
  };
  if (keeps_) world_.storage().begin(number_, hosted_);
  const std::vector<SavedState> found = joins ? world_.look(*this) : std::vector<SavedState>();
  for (std::size_t index = 0; index < hosted_.size(); ++index) {
    const int peer = hosted_[index];
    NodeMemory memory;
    for (std::size_t k = 0; k < specs.size(); ++k) {
      memory.front.push_back(place.fronts[k].row(index));
      memory.back.push_back(specs[k].mixed ? place.backs[k].row(index) : std::span<float>());
    }
    memory.gradient = place.gradients.row(index);
    memory.counters = world_.parts().algorithm->counters(peer, *world_.parts().schedule);
    place.nodes.push_back(
        std::make_unique<Node>(place.exchange, peer, world_.scenario().peers, specs, memory));
    find_state(place, index, found);
    place.memberships.push_back(std::make_unique<Membership>(
        place.exchange, *place.nodes.back(), Membership::Plan{partners, say(peer)}));
    for (const int to : (*partners)[static_cast<std::size_t>(peer)])
      if (!std::ranges::binary_search(hosted_, to))
        place.exchange.connect(peer, to, world_.link(peer, to));
  }
  if (joins) join(place);
  for (std::size_t index = 0; index < hosted_.size(); ++index)
    place.drivers.push_back(drive(place, index, joins));
  for (task<void>& driver : place.drivers) driver.start(place.scheduler);
  touched_ = true;
}

/// Rows as at the start, or as `found`.
void Process::find_state(Place& place, std::size_t index, const std::vector<SavedState>& found) {
  const std::vector<RowSpec>& specs = world_.parts().rows;
  const int peer = hosted_[index];
  const FloatRow start = start_of(world_.scenario(), peer);
  for (std::size_t k = 0; k < specs.size(); ++k) {
    const std::span<float> front = place.fronts[k].row(index);
    std::fill(front.end() - static_cast<std::ptrdiff_t>(specs[k].extra), front.end(),
              specs[k].extra_start);
    if (specs[k].initial == RowSpec::Initial::parameters) std::ranges::copy(start, front.begin());
  }
  const auto saved = std::ranges::find(found, peer, &SavedState::peer);
  if (saved == found.end()) return;
  Node& node = *place.nodes[index];
  for (std::size_t k = 0; k < specs.size(); ++k)
    std::ranges::copy(saved->rows[k], place.fronts[k].row(index).begin());
  std::ranges::copy(saved->counters, node.counters().begin());
  world_.parts().algorithm->resume(peer, saved->round, node.counters(), *world_.parts().schedule);
  node.set_steps_done(saved->steps);
}

SavedState Process::state_of(Place& place, std::size_t index, Round done) const {
  Node& node = *place.nodes[index];
  SavedState state{
      done, node.id(), node.steps_done(), {node.counters().begin(), node.counters().end()}, {}};
  for (int k = 0; k < static_cast<int>(world_.parts().rows.size()); ++k)
    state.rows.push_back(copy_of(node.row(k)));
  return state;
}

void Process::join(Place& place) {
  for (const auto& membership : place.memberships) membership->join();
  for (std::size_t index = 0; index < hosted_.size(); ++index)
    for (const int there :
         world_.parts().algorithm->partners(hosted_[index], *world_.parts().schedule)) {
      if (!std::ranges::binary_search(hosted_, there)) continue;
      world_.trace().links.push_back(
          {true, world_.life_of(hosted_[index]), world_.life_of(there), 0, 0, world_.now()});
      place.memberships[index]->back(there);
    }
}

task<void> Process::drive(Place& place, std::size_t index, bool joins) {
  Node& node = *place.nodes[index];
  Life& log = world_.life(node.id());
  const auto rows = static_cast<int>(world_.parts().rows.size()), last = world_.scenario().rounds;
  Round t = 0;
  if (joins) {
    const Round first = co_await place.memberships[index]->await_admission();
    t = first;
  }
  while (t < static_cast<Round>(last)) {
    const bool restarts = co_await place.memberships[index]->begin_round(t);
    RoundRecord& record = log.rounds.emplace_back();
    record.round = t;
    record.began = world_.now();
    record.restarted = restarts;
    record.reachable = place.memberships[index]->reachable();
    if (restarts) world_.tell(fmt::format("peer {}: rows begin again in round {}", node.id(), t));
    for (int k = 0; k < rows; ++k) record.begin.push_back(copy_of(node.row(k)));
    co_await world_.parts().algorithm->round(node, t);
    RoundRecord& done = log.rounds.back();
    for (int k = 0; k < rows; ++k) done.end.push_back(copy_of(node.row(k)));
    done.deviations = node.endpoint().take_deviations();
    world_.note({static_cast<std::uint64_t>(node.id()), t,
                 static_cast<std::uint64_t>(world_.now().count())});
    // A peer that leaves rounds out stands in all of them as it stands now.
    for (const Round next = node.endpoint().next_round(t, static_cast<Round>(last)); t < next;)
      if (++t % static_cast<Round>(world_.scenario().checkpoint_every) == 0 && keeps_)
        world_.save(*this, state_of(place, index, t));
    for (const Deviation& deviation : node.endpoint().take_deviations())
      log.skipped.push_back(deviation);
  }
  co_await node.endpoint().send_rest();
  co_await world_.parts().algorithm->drain(node);
  log.finished = true;
  log.finished_at = world_.now();
  if (done()) world_.leave(*this);
}

bool Process::done() const {
  return std::ranges::all_of(hosted_, [this](int peer) { return world_.life(peer).finished; });
}

void Process::settle() {
  if (!touched_ || paused_ || !place_) return;
  touched_ = false;
  place_->scheduler.run();
  for (const int peer : hosted_) {
    Life& record = world_.life(peer);
    record.most_waiting_bytes =
        std::max(record.most_waiting_bytes, place_->exchange.endpoint(peer).waiting_bytes());
  }
}

Time Process::next() const { return place_ && !paused_ ? place_->scheduler.next() : Time::max(); }

void Process::fire() {
  place_->scheduler.fire();
  touched_ = true;
}

Status Process::deliver(Chunk chunk) {
  touched_ = true;
  return place_->exchange.deliver(std::move(chunk));
}

Membership& Process::membership(int peer) {
  touched_ = true;
  return *place_->memberships[static_cast<std::size_t>(std::ranges::find(hosted_, peer) -
                                                       hosted_.begin())];
}

void Process::lost(int peer, int other, const std::string& why) {
  if (world_.parts().algorithm->needs().tolerates_peer_loss)
    return membership(peer).lost(other, why);
  if (!done()) world_.give_up(*this);
}

void Process::back(int peer, int other) {
  if (world_.parts().algorithm->needs().tolerates_peer_loss) membership(peer).back(other);
}

void Process::left(int peer, int other) { membership(peer).left(other); }
Round Process::round_of(int peer) const { return place_->exchange.endpoint(peer).round(); }

}  // namespace gossamer::gossip::sim
