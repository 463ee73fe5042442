#include "simulator/world/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "gossip/links/simulated_link.hpp"
#include "gpu/cpu_device.hpp"

namespace gossamer::simulator {

namespace {

FloatRow normal_row(const Scenario& scenario, int peer, std::uint64_t step) {
  RandomStream random(scenario.seed, static_cast<std::uint32_t>(peer), Purpose::scenario, step);
  FloatRow row(static_cast<std::size_t>(scenario.length));
  for (float& value : row) value = static_cast<float>(random.next_normal());
  return row;
}

FloatRow copy_of(std::span<const float> row) { return {row.begin(), row.end()}; }

}  // namespace

/// Runs when the world says so, by its machine's clock, which is `lead` ahead of the world's.
class ProcessScheduler final : public Scheduler {
 public:
  ProcessScheduler(const World& world, const Time& lead) : world_(world), lead_(lead) {}
  Time now() const override { return world_.now() + lead_; }
  /// Runs all that is ready.
  void run() override { drain(); }
  bool fire() { return fire_due(now()); }
  /// By the world's clock.
  Time next() const { return next_timer() == Time::max() ? Time::max() : next_timer() - lead_; }

 private:
  const World& world_;
  const Time& lead_;
};

/// Peer i minimises ½ ‖x − b_i‖², b_i random. Every operation is recorded in the trace.
class RecordingTrainer final : public Trainer {
 public:
  explicit RecordingTrainer(World& world) : world_(world) {}
  void run(TrainOperation operation, std::span<TrainRequest* const> requests) override;
  double rate(int, std::uint64_t) const override { return world_.scenario().rate; }
  std::size_t shard_size(int) const override { return 1; }
  std::uint64_t batches_per_epoch(int) const override { return 1; }

 private:
  World& world_;
  std::map<int, FloatRow> targets_;
};

FloatRow target_of(const Scenario& scenario, int peer) { return normal_row(scenario, peer, 2); }
FloatRow start_of(const Scenario& scenario, int peer) { return normal_row(scenario, peer, 3); }

void RecordingTrainer::run(TrainOperation operation, std::span<TrainRequest* const> requests) {
  for (TrainRequest* request : requests) {
    FloatRow& target = targets_[request->shard_of];
    if (target.empty()) target = target_of(world_.scenario(), request->shard_of);
    TrainRecord trained{operation, copy_of(request->x), {}, {}};
    const auto rate = static_cast<float>(world_.scenario().rate);
    for (int step = 0; step < request->steps; ++step)
      for (std::size_t k = 0; k < request->x.size(); ++k) {
        if (operation != TrainOperation::update) request->gradient[k] = request->x[k] - target[k];
        if (operation != TrainOperation::gradient) request->x[k] -= rate * request->gradient[k];
      }
    trained.gradient = copy_of(request->gradient.first(request->x.size()));
    trained.after = copy_of(request->x);
    world_.incarnation(request->peer).rounds.back().trained.push_back(std::move(trained));
  }
}

struct Process::Runtime {
  Runtime(World& world, const StepTimes& times, const Time& lead)
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

GroupRequest Process::group_request(Runtime& runtime) {
  const Scenario& scenario = world_.scenario();
  const Protocol& protocol = world_.protocol();
  ExchangeOptions options;
  options.policy = protocol.policy;
  options.staleness = static_cast<Round>(scenario.staleness);
  options.chunk_values = static_cast<std::size_t>(scenario.chunk_values);
  options.codec = protocol.codec.get();
  options.seed = scenario.seed;
  options.rounds = static_cast<Round>(scenario.rounds);
  GroupRequest request{runtime.scheduler,  runtime.compute,     runtime.device,
                       *protocol.schedule, *protocol.algorithm, options};
  request.hosted = hosted_;
  request.engine = {scenario.peers, options.rounds,
                    saves_states_ ? static_cast<Round>(scenario.checkpoint_every) : 0};
  request.layout.length = static_cast<std::size_t>(scenario.length);
  request.initialise = [&scenario](int peer, std::span<float> parameters) {
    std::ranges::copy(start_of(scenario, peer), parameters.begin());
  };
  return request;
}

Process::Process(World& world, int number) : world_(world), number_(number) {
  const Scenario& scenario = world.scenario();
  for (int peer = 0; peer < scenario.peers; ++peer)
    if (scenario.placement[static_cast<std::size_t>(peer)] == number) hosted_.push_back(peer);
  times_ = {.each = from_milliseconds(scenario.step_ms),
            .spread = {.width = scenario.step_spread},
            .seed = scenario.seed};
  for (const Fault& fault : scenario.fault_list()) {
    if (fault.process != number) continue;
    if (fault.kind == FaultKind::slow)
      times_.each = Time(std::llround(static_cast<double>(times_.each.count()) * fault.amount));
    using enum FaultKind;
    for (const FaultKind kind : {restart, reboot, failed_write, torn_write, killed_write})
      saves_states_ = saves_states_ || fault.kind == kind;
  }
  runtime_ = make_runtime();
}

Process::~Process() = default;

void Process::end() { runtime_.reset(); }

void Process::restart() {
  GOSSAMER_CHECK(!runtime_, "a process is restarted that has not ended");
  paused_ = false;
  runtime_ = make_runtime();
  start(true);
}

std::unique_ptr<Process::Runtime> Process::make_runtime() {
  const auto report = [this](const Error& error) {
    world_.trace().errors.push_back(error.message);
  };
  auto runtime = std::make_unique<Runtime>(world_, times_, lead_);
  EngineHooks& hooks = *this;
  runtime->group.emplace(group_request(*runtime), hooks, report);
  runtime->group->connect_hosted([&runtime = *runtime, report](int, int) {
    return std::make_unique<SimulatedLink>(runtime.scheduler, runtime.group->exchange(),
                                           LinkModel{}, runtime.port, runtime.port, report);
  });
  return runtime;
}

void Process::start(bool joins) {
  PeerGroup& group = *runtime_->group;
  const auto partners = partners_of_all(*world_.protocol().algorithm, *world_.protocol().schedule,
                                        world_.scenario().peers);
  if (saves_states_) world_.storage().start(number_, hosted_);
  const std::vector<SavedState> found =
      joins ? world_.load_states(*this) : std::vector<SavedState>();
  for (const auto& engine : group.engines()) restore(*engine, found);
  group.tolerate_loss([&](int peer) {
    return Membership::Options{partners, [this, peer](const std::string& line) {
                                 world_.log_event(fmt::format("peer {}: {}", peer, line));
                               }};
  });
  for (const int peer : hosted_)
    for (const int to : (*partners)[static_cast<std::size_t>(peer)])
      if (!group.hosts(to)) group.exchange().connect(peer, to, world_.link(peer, to));
  if (joins) join();
  for (const auto& engine : group.engines()) engine->start();
  ready_ = true;
}

/// Sets the engine's state to its peer's in `found`, if there is one.
void Process::restore(PeerEngine& engine, const std::vector<SavedState>& found) {
  const auto saved = std::ranges::find(found, engine.id(), &SavedState::peer);
  if (saved == found.end()) return;
  const std::vector<std::span<float>> rows = engine.state_rows();
  for (std::size_t k = 0; k < rows.size(); ++k) std::ranges::copy(saved->rows[k], rows[k].begin());
  engine.restore({saved->round, saved->steps, saved->counters});
}

void Process::join() {
  for (const int here : hosted_)
    for (const int there : world_.protocol().algorithm->partners(here, *world_.protocol().schedule))
      if (runtime_->group->hosts(there))
        world_.trace().links.push_back(
            {true, world_.incarnation_of(here), world_.incarnation_of(there), 0, 0, world_.now()});
  runtime_->group->join({});
}

void Process::before_round(PeerEngine& engine, bool reinitialised) {
  RoundRecord& record = world_.incarnation(engine.id()).rounds.emplace_back();
  record.round = engine.round();
  record.began = world_.now();
  record.reinitialised = reinitialised;
  record.reachable = engine.membership().reachable();
  if (reinitialised)
    world_.log_event(
        fmt::format("peer {}: rows are reinitialised in round {}", engine.id(), engine.round()));
  for (const std::span<float> row : engine.state_rows()) record.begin.push_back(copy_of(row));
}

bool Process::after_round(PeerEngine& engine) {
  RoundRecord& record = world_.incarnation(engine.id()).rounds.back();
  for (const std::span<float> row : engine.state_rows()) record.end.push_back(copy_of(row));
  record.deviations = engine.node().endpoint().take_deviations();
  world_.add_to_hash({static_cast<std::uint64_t>(engine.id()), engine.round(),
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
    world_.incarnation(engine.id()).skipped.push_back(deviation);
  return {};
}

void Process::finished(PeerEngine& engine) {
  Incarnation& incarnation = world_.incarnation(engine.id());
  incarnation.finished = true;
  incarnation.finished_at = world_.now();
  if (done()) world_.close(*this);
}

bool Process::done() const {
  return std::ranges::all_of(hosted_,
                             [this](int peer) { return world_.incarnation(peer).finished; });
}

void Process::run_ready() {
  if (!ready_ || paused_ || !runtime_) return;
  ready_ = false;
  runtime_->scheduler.run();
  for (const int peer : hosted_) {
    Incarnation& record = world_.incarnation(peer);
    record.most_waiting_bytes =
        std::max(record.most_waiting_bytes,
                 runtime_->group->exchange().endpoint(peer).messenger().unread_bytes());
  }
}

Time Process::next_timer() const {
  return runtime_ && !paused_ ? runtime_->scheduler.next() : Time::max();
}

void Process::fire() {
  runtime_->scheduler.fire();
  ready_ = true;
}

Status Process::deliver(Chunk chunk) {
  ready_ = true;
  return runtime_->group->exchange().deliver(std::move(chunk));
}

PeerEngine& Process::engine(int peer) {
  ready_ = true;
  return runtime_->group->engine(peer);
}

void Process::lose_link(int peer, int other, const std::string& why) {
  if (world_.protocol().algorithm->requirements().tolerates_peer_loss)
    return engine(peer).lose_link(other, why);
  if (!done()) world_.give_up(*this);
}

void Process::restore_link(int peer, int other) {
  if (world_.protocol().algorithm->requirements().tolerates_peer_loss)
    engine(peer).restore_link(other);
}

void Process::close_link(int peer, int other) { engine(peer).close_link(other); }
Round Process::round_of(int peer) const {
  return runtime_->group->exchange().endpoint(peer).round();
}

}  // namespace gossamer::simulator
