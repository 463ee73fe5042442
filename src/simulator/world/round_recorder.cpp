#include "simulator/world/round_recorder.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "simulator/world/process.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::simulator {

void RoundRecorder::before_round(PeerEngine& engine, bool reinitialised) {
  RoundRecord& record = world_.recorder().incarnation(engine.id()).rounds.emplace_back();
  record.round = engine.round();
  record.began = world_.now();
  record.reinitialised = reinitialised;
  record.reachable = engine.membership().reachable();
  if (reinitialised)
    world_.recorder().log_event(
        fmt::format("peer {}: rows are reinitialised in round {}", engine.id(), engine.round()));
  for (const std::span<float> row : engine.state_rows()) record.begin.push_back(copy_of(row));
}

bool RoundRecorder::after_round(PeerEngine& engine) {
  RoundRecord& record = world_.recorder().incarnation(engine.id()).rounds.back();
  for (const std::span<float> row : engine.state_rows()) record.end.push_back(copy_of(row));
  record.deviations = engine.node().endpoint().take_deviations();
  world_.recorder().add_to_hash({static_cast<std::uint64_t>(engine.id()), engine.round(),
                                 static_cast<std::uint64_t>(world_.now().count())});
  return true;
}

task<void> RoundRecorder::save(PeerEngine& engine) {
  PeerState state = engine.state();
  SavedState saved{state.round, engine.id(), state.steps, std::move(state.counters), {}};
  for (const std::span<float> row : engine.state_rows()) saved.rows.push_back(copy_of(row));
  world_.disks().save(process_.number(), saved);
  world_.end_if_killed(process_, state.round);
  return {};
}

task<void> RoundRecorder::completed(PeerEngine& engine) {
  for (const Deviation& deviation : engine.node().endpoint().take_deviations())
    world_.recorder().incarnation(engine.id()).skipped.push_back(deviation);
  return {};
}

void RoundRecorder::finished(PeerEngine& engine) {
  Incarnation& incarnation = world_.recorder().incarnation(engine.id());
  incarnation.finished = true;
  incarnation.finished_at = world_.now();
  if (process_.done()) world_.close(process_);
}

}  // namespace gossamer::simulator
