#include "simulator/world/round_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "simulator/world/connection.hpp"
#include "simulator/world/connection_table.hpp"
#include "simulator/world/process.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::simulator {

/// The process repeats rounds that an earlier incarnation had recorded: from its first round on,
/// or, where it hosts other peers that may begin earlier, from n rounds before (Startup::join_at).
bool RoundRecorder::joined(PeerEngine& engine) {
  const bool first = std::ranges::all_of(process_.peers(), [this](int peer) {
    return world_.recorder().incarnation(peer).recorded.empty();
  });
  const Round n = process_.peers().size() == 1 ? 0 : static_cast<Round>(world_.scenario().peers);
  if (first)
    world_.disks()
        .log(process_.number())
        .resume_at(engine.round() - std::min(engine.round(), n), process_.peers(), {}, true);
  return true;
}

Incarnation& RoundRecorder::incarnation_of(const PeerEngine& engine) {
  return world_.recorder().incarnation(engine.id());
}

void RoundRecorder::on_part(PeerEngine& engine, Part part) {
  incarnation_of(engine).waits = part == Part::waits;
  incarnation_of(engine).gave_up = part == Part::gives_up;
  if (part != Part::lost_donor) return;
  world_.recorder().log_event(fmt::format("peer {} has lost its donor", engine.id()));
  incarnation_of(engine).alive = false;
  world_.recorder().add_incarnation(engine.id()).joins = true;
  // No connection belongs to two incarnations.
  world_.at(world_.now(), [this, id = engine.id()] {
    world_.connections().for_each_end(process_.number(), [id](Connection& connection, int end) {
      if (end == id) connection.lose(end, "its peer joins anew");
    });
  });
}

void RoundRecorder::before_round(PeerEngine& engine, bool reinitialised) {
  RoundRecord& record = incarnation_of(engine).rounds.emplace_back();
  record.round = engine.round();
  record.began = world_.now();
  record.steps = engine.node().steps_done();
  record.reinitialised = reinitialised;
  const topology::Participants& participants =
      engine.node().endpoint().view().schedule().participants();
  if (participants.is_open()) record.participants = participants.at(record.round).peers;
  record.reachable = engine.membership().flooding().table().reachable();
  if (reinitialised)
    world_.recorder().log_event(
        fmt::format("peer {}: rows are reinitialised in round {}", engine.id(), engine.round()));
  for (const std::span<float> row : engine.state_rows()) record.begin.push_back(copy_of(row));
}

bool RoundRecorder::after_round(PeerEngine& engine) {
  RoundRecord& record = incarnation_of(engine).rounds.back();
  for (const std::span<float> row : engine.state_rows()) record.end.push_back(copy_of(row));
  record.deviations = engine.node().endpoint().take_deviations();
  world_.recorder().add_to_hash({static_cast<std::uint64_t>(engine.id()), engine.round(),
                                 static_cast<std::uint64_t>(world_.now().count())});
  process_.after_round();
  return true;
}

task<void> RoundRecorder::save(PeerEngine& engine) {
  PeerState state = engine.state();
  SavedState saved{state.round, engine.id(), state.steps, std::move(state.counters), {}};
  for (const std::span<float> row : engine.state_rows()) saved.rows.push_back(copy_of(row));
  world_.disks().save(process_.number(), saved, world_.recorder());
  world_.control().end_if_killed(process_, state.round);
  return {};
}

task<void> RoundRecorder::completed(PeerEngine& engine) {
  Incarnation& incarnation = incarnation_of(engine);
  world_.disks()
      .log(process_.number())
      .append({engine.round(), engine.id(), incarnation.joins && incarnation.recorded.empty()});
  incarnation.recorded.push_back(engine.round());
  for (const Deviation& deviation : engine.node().endpoint().take_deviations())
    incarnation.skipped.push_back(deviation);
  return {};
}

void RoundRecorder::finished(PeerEngine& engine) {
  Incarnation& incarnation = incarnation_of(engine);
  incarnation.stopped = engine.round() < static_cast<Round>(world_.scenario().rounds);
  incarnation.finished = !incarnation.stopped;
  const topology::Participants& participants =
      engine.node().endpoint().view().schedule().participants();
  if (participants.is_open()) incarnation.left = participants.end_of(engine.id());
  incarnation.waits = false;
  world_.recorder().log_event(
      fmt::format("peer {} ends after {} rounds", engine.id(), engine.round()));
  incarnation.finished_at = world_.now();
  if (process_.done()) return world_.control().close(process_);
  if (process_.stopped_after()) world_.control().stopped(process_);
}

}  // namespace gossamer::simulator
