#include "simulator/world/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "simulator/world/connection.hpp"
#include "simulator/world/connection_table.hpp"

namespace gossamer::simulator {

ProcessPlan plan_of(const Scenario& scenario, int process) {
  ProcessPlan plan;
  for (int peer = 0; peer < scenario.peers; ++peer)
    if (scenario.placement[static_cast<std::size_t>(peer)] == process) plan.hosted.push_back(peer);
  plan.times = {.each = from_milliseconds(scenario.steps.step_ms),
                .spread = {.width = scenario.steps.step_spread},
                .seed = scenario.seed};
  for (const Fault& fault : scenario.fault_list()) {
    if (fault.process != process && fault.kind != FaultKind::interrupt_all) continue;
    if (fault.kind == FaultKind::slow)
      plan.times.each =
          Time(std::llround(static_cast<double>(plan.times.each.count()) * fault.amount));
    plan.saves_states = plan.saves_states || needs_checkpoints(fault.kind);
  }
  return plan;
}

Runtime::Runtime(World& world, const ProcessPlan& plan, const Time& lead, EngineHooks& hooks)
    : world_(world),
      changing_(world.protocol().schedule->copy_if_open()),
      scheduler_(world, lead),
      device_(1),
      trainer_(world.scenario(), world.recorder()),
      compute_(scheduler_, executor_, device_, &trainer_, plan.times),
      group_(request(plan), hooks, [this](const Error& error) {
        world_.recorder().trace().errors.push_back(error.message);
      }) {
  group_.connect_hosted([this](int, int) {
    return std::make_unique<SimulatedLink>(
        scheduler_, group_.exchange(), LinkModel{}, port_, port_,
        [this](const Error& error) { world_.recorder().trace().errors.push_back(error.message); });
  });
}

GroupRequest Runtime::request(const ProcessPlan& plan) {
  const Scenario& scenario = world_.scenario();
  const Protocol& protocol = world_.protocol();
  ExchangeOptions options;
  options.policy = protocol.policy;
  options.staleness = static_cast<Round>(scenario.staleness);
  options.chunk_values = static_cast<std::size_t>(scenario.chunk_values);
  options.codec = protocol.codec.get();
  options.seed = scenario.seed;
  options.rounds = static_cast<Round>(scenario.rounds);
  const topology::MixingSchedule& schedule = changing_ ? *changing_ : *protocol.schedule;
  GroupRequest request{scheduler_, compute_, device_, schedule, *protocol.algorithm, options};
  request.hosted = plan.hosted;
  request.engine = {scenario.peers, options.rounds,
                    plan.saves_states ? static_cast<Round>(scenario.checkpoint_every) : 0};
  request.layout.length = static_cast<std::size_t>(scenario.length);
  request.initialise = [&scenario](int peer, std::span<float> parameters) {
    std::ranges::copy(start_of(scenario, peer), parameters.begin());
  };
  return request;
}

void Runtime::start() {
  tolerate_loss();
  TraceRecorder& recorder = world_.recorder();
  for (const int here : group_.hosted())
    for (const int there : world_.protocol().absent_at_start())
      recorder.trace().links.push_back({false, recorder.incarnation_of(here),
                                        recorder.incarnation_of(there), 0, 0, world_.now()});
  for (const auto& engine : group_.engines()) engine->start();
}

void Runtime::resume(const Resumption& resumption) {
  tolerate_loss();
  for (const auto& engine : group_.engines()) engine->begin_at(resumption.round);
  TraceRecorder& recorder = world_.recorder();
  for (const int here : group_.hosted())
    for (const int there :
         world_.protocol().algorithm->partners(here, *world_.protocol().schedule)) {
      if (!std::ranges::binary_search(resumption.without, there)) continue;
      recorder.trace().links.push_back({false, recorder.incarnation_of(here),
                                        recorder.incarnation_of(there), 0, resumption.round,
                                        world_.now()});
      group_.engine(here).membership().on_link_lost(
          there, fmt::format("peer {} has no checkpoint of round {}", there, resumption.round));
    }
  restore(resumption.states);
  for (const auto& engine : group_.engines()) {
    engine->begin_at(engine->round());
    engine->start();
  }
}

void Runtime::join(const std::vector<SavedState>& found) {
  restore(found);
  tolerate_loss();
  TraceRecorder& recorder = world_.recorder();
  for (const int here : group_.hosted())
    for (const int there : world_.protocol().algorithm->partners(here, *world_.protocol().schedule))
      if (group_.hosts(there))
        recorder.trace().links.push_back({true, recorder.incarnation_of(here),
                                          recorder.incarnation_of(there), 0, 0, world_.now()});
  group_.join({});
  for (const auto& engine : group_.engines()) engine->start();
}

/// Sets the peers to their states in `states`, where there is one.
void Runtime::restore(const std::vector<SavedState>& states) {
  for (const auto& engine : group_.engines()) {
    const auto saved = std::ranges::find(states, engine->id(), &SavedState::peer);
    if (saved == states.end()) continue;
    const std::vector<std::span<float>> rows = engine->state_rows();
    for (std::size_t k = 0; k < rows.size(); ++k)
      std::ranges::copy(saved->rows[k], rows[k].begin());
    engine->restore({saved->round, saved->steps, saved->counters});
  }
}

/// Gives the peers their membership, and their links to peers of other processes.
void Runtime::tolerate_loss() {
  const auto partners = partners_of_all(*world_.protocol().algorithm, *world_.protocol().schedule,
                                        world_.scenario().peers);
  group_.tolerate_loss([&](int peer) {
    return Membership::Options{
        partners,
        [this, peer](const std::string& line) {
          world_.recorder().log_event(fmt::format("peer {}: {}", peer, line));
        },
        [this, peer](const MembershipEvent& event) {
          if (event.kind == MembershipEvent::Kind::link_lost && !group_.hosts(event.value))
            world_.connections().between(peer, event.value).note_lost_link(peer);
        },
        false, changing_.get()};
  });
  group_.exchange().faults().on_reset = [this](int here, int there, const Error& why) {
    scheduler_.after(Time(0), [this, here, there, why] { reset_link(here, there, why.message); });
  };
  group_.exchange().faults().on_parted = [this](int here, int there) {
    world_.connections().between(here, there).part(here);
  };
  for (const int peer : group_.hosted())
    for (const int to : (*partners)[static_cast<std::size_t>(peer)])
      if (!group_.hosts(to))
        group_.exchange().connect(peer, to, world_.connections().link(peer, to));
}

void Runtime::reset_link(int here, int there, const std::string& why) {
  if (!group_.hosts(there)) return world_.connections().between(here, there).lose(here, why);
  TraceRecorder& recorder = world_.recorder();
  for (const bool restored : {false, true})
    for (const auto& [end, other] : {std::pair(here, there), std::pair(there, here)})
      recorder.trace().links.push_back({restored, recorder.incarnation_of(end),
                                        recorder.incarnation_of(other), 0,
                                        group_.exchange().endpoint(end).round(), world_.now()});
  group_.reset_link(here, there, why);
}

}  // namespace gossamer::simulator
