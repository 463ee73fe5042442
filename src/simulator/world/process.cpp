#include "simulator/world/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

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
  Place(World& world, const StepTimes& times, const Time& lead)
      : scheduler(world, lead),
        device(1),
        trainer(world),
        compute(scheduler, executor, device, &trainer, times) {}

  ProcessScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device;
  RecordingTrainer trainer;
  Compute compute;
  SimulatedPort port;
  std::optional<PeerGroup> group;
};

GroupRequest Process::group_request(Place& place) {
  const Scenario& scenario = world_.scenario();
  const Parts& parts = world_.parts();
  ExchangeOptions options;
  options.policy = parts.policy;
  options.staleness = static_cast<Round>(scenario.staleness);
  options.chunk_values = static_cast<std::size_t>(scenario.chunk_values);
  options.codec = parts.codec.get();
  options.seed = scenario.seed;
  options.rounds = static_cast<Round>(scenario.rounds);
  GroupRequest request{place.scheduler, place.compute,    place.device,
                       *parts.schedule, *parts.algorithm, options};
  request.hosted = hosted_;
  request.engine = {scenario.peers, options.rounds,
                    keeps_ ? static_cast<Round>(scenario.checkpoint_every) : 0};
  request.layout.length = static_cast<std::size_t>(scenario.length);
  request.initialise = [&scenario](int peer, std::span<float> parameters) {
    std::ranges::copy(start_of(scenario, peer), parameters.begin());
  };
  return request;
}

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
  place_ = make_place();
}

Process::~Process() { end(); }

void Process::end() { place_.reset(); }

void Process::begin_again() {
  GOSSAMER_CHECK(!place_, "a process begins again that has not ended");
  paused_ = false;
  place_ = make_place();
  start(true);
}

std::unique_ptr<Process::Place> Process::make_place() {
  const auto complain = [this](const Error& error) {
    world_.trace().complaints.push_back(error.message);
  };
  auto place = std::make_unique<Place>(world_, times_, lead_);
  EngineHooks& hooks = *this;
  place->group.emplace(group_request(*place), hooks, complain);
  place->group->connect_hosted([&place = *place, complain](int, int) {
    return std::make_unique<SimulatedLink>(place.scheduler, place.group->exchange(), LinkModel{},
                                           place.port, place.port, complain);
  });
  return place;
}

void Process::start(bool joins) {
  PeerGroup& group = *place_->group;
  const auto partners =
      partners_of_all(*world_.parts().algorithm, *world_.parts().schedule, world_.scenario().peers);
  if (keeps_) world_.storage().begin(number_, hosted_);
  const std::vector<SavedState> found = joins ? world_.look(*this) : std::vector<SavedState>();
  for (const auto& engine : group.engines()) restore(*engine, found);
  group.tolerate_loss([&](int peer) {
    return Membership::Plan{partners, [this, peer](const std::string& line) {
                              world_.tell(fmt::format("peer {}: {}", peer, line));
                            }};
  });
  for (const int peer : hosted_)
    for (const int to : (*partners)[static_cast<std::size_t>(peer)])
      if (!group.hosts(to)) group.exchange().connect(peer, to, world_.link(peer, to));
  if (joins) join();
  for (const auto& engine : group.engines()) engine->start();
  touched_ = true;
}

/// The engine's state is the one of its peer in `found`, if there is one.
void Process::restore(PeerEngine& engine, const std::vector<SavedState>& found) {
  const auto saved = std::ranges::find(found, engine.id(), &SavedState::peer);
  if (saved == found.end()) return;
  const std::vector<std::span<float>> rows = engine.state_rows();
  for (std::size_t k = 0; k < rows.size(); ++k) std::ranges::copy(saved->rows[k], rows[k].begin());
  engine.restore({saved->round, saved->steps, saved->counters});
}

void Process::join() {
  for (const int here : hosted_)
    for (const int there : world_.parts().algorithm->partners(here, *world_.parts().schedule))
      if (place_->group->hosts(there))
        world_.trace().links.push_back(
            {true, world_.life_of(here), world_.life_of(there), 0, 0, world_.now()});
  place_->group->join({});
}

void Process::before_round(PeerEngine& engine, bool reinitialised) {
  RoundRecord& record = world_.life(engine.id()).rounds.emplace_back();
  record.round = engine.round();
  record.began = world_.now();
  record.restarted = reinitialised;
  record.reachable = engine.membership().reachable();
  if (reinitialised)
    world_.tell(fmt::format("peer {}: rows begin again in round {}", engine.id(), engine.round()));
  for (const std::span<float> row : engine.state_rows()) record.begin.push_back(copy_of(row));
}

bool Process::after_round(PeerEngine& engine) {
  RoundRecord& record = world_.life(engine.id()).rounds.back();
  for (const std::span<float> row : engine.state_rows()) record.end.push_back(copy_of(row));
  record.deviations = engine.node().endpoint().take_deviations();
  world_.note({static_cast<std::uint64_t>(engine.id()), engine.round(),
               static_cast<std::uint64_t>(world_.now().count())});
  return true;
}

task<void> Process::save(PeerEngine& engine) {
  PeerState state = engine.state();
  SavedState saved{state.round, engine.id(), state.steps, std::move(state.counters), {}};
  for (const std::span<float> row : engine.state_rows()) saved.rows.push_back(copy_of(row));
  world_.save(*this, saved);
  return {};
}

task<void> Process::completed(PeerEngine& engine) {
  for (const Deviation& deviation : engine.node().endpoint().take_deviations())
    world_.life(engine.id()).skipped.push_back(deviation);
  return {};
}

void Process::finished(PeerEngine& engine) {
  Life& life = world_.life(engine.id());
  life.finished = true;
  life.finished_at = world_.now();
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
    record.most_waiting_bytes = std::max(record.most_waiting_bytes,
                                         place_->group->exchange().endpoint(peer).waiting_bytes());
  }
}

Time Process::next() const { return place_ && !paused_ ? place_->scheduler.next() : Time::max(); }

void Process::fire() {
  place_->scheduler.fire();
  touched_ = true;
}

Status Process::deliver(Chunk chunk) {
  touched_ = true;
  return place_->group->exchange().deliver(std::move(chunk));
}

PeerEngine& Process::engine(int peer) {
  touched_ = true;
  return place_->group->engine(peer);
}

void Process::lost(int peer, int other, const std::string& why) {
  if (world_.parts().algorithm->needs().tolerates_peer_loss)
    return engine(peer).lose_link(other, why);
  if (!done()) world_.give_up(*this);
}

void Process::back(int peer, int other) {
  if (world_.parts().algorithm->needs().tolerates_peer_loss) engine(peer).restore_link(other);
}

void Process::left(int peer, int other) { engine(peer).close_link(other); }
Round Process::round_of(int peer) const { return place_->group->exchange().endpoint(peer).round(); }

}  // namespace gossamer::gossip::sim
