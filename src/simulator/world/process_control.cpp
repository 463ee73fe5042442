#include "simulator/world/process_control.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/world/connection.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::simulator {

void ProcessControl::end_process(Process& process, bool resets) {
  if (!process.alive()) return;
  for (const int peer : process.peers()) {
    Incarnation& incarnation = world_.recorder().incarnation(peer);
    incarnation.alive = incarnation.finished;  // a finished peer's end changes nothing
  }
  world_.connections().for_each_end(process.number(), [resets](Connection& connection, int end) {
    connection.process_ended(end, resets);
  });
  process.end();
  if (process.saves_states())
    world_.disks().storage().end(process.number(), resets                  ? Outage::process
                                                   : world_.random() < 0.5 ? Outage::old_names
                                                                           : Outage::new_names);
  for (Connection* connection : world_.connections().of(process.number()))
    for (const int end : connection->ends()) connection->wire(end).update_silence();
}

void ProcessControl::restart(Process& process) {
  if (process.alive() || stop_pause_ || world_.recorder().is_over() || !world_.tolerates_loss())
    return;
  for (const int peer : process.peers()) world_.recorder().add_incarnation(peer).joins = true;
  process.start();
  world_.connections().for_each_end(process.number(), [](Connection& connection, int end) {
    if (end == connection.ends().front()) connection.redial_later();
  });
}

void ProcessControl::interrupt(Process& process, Time pause) {
  // The only process finds no network that it could join: it resumes.
  if (world_.processes().size() == 1) return interrupt_all(pause);
  if (!process.alive() || process.done() || !world_.tolerates_loss()) return;
  restart_pauses_[process.number()] = pause;
  ask_to_stop(process);
}

void ProcessControl::leave(Process& process) {
  if (!process.alive() || process.done()) return;
  const int peer = process.peers().front();
  if (process.engine(peer).membership().leave())
    world_.recorder().log_event(fmt::format("peer {} leaves, or will once it has joined", peer));
}

void ProcessControl::ask_to_stop(Process& process) {
  if (!process.interrupt()) end_and_restart(process);
}

void ProcessControl::end_and_restart(Process& process) {
  give_up(process);
  if (const auto pause = restart_pauses_.find(process.number()); pause != restart_pauses_.end())
    world_.at(world_.now() + pause->second, [this, &process] { restart(process); });
}

void ProcessControl::interrupt_all(Time pause) {
  const bool any_done =
      std::ranges::any_of(world_.processes(), [](const auto& process) { return process->done(); });
  if (stop_pause_ || any_done || !world_.tolerates_loss()) return;
  world_.recorder().log_event("all processes are asked to stop");
  stop_pause_ = pause;
  for (const auto& process : world_.processes())
    if (process->alive()) ask_to_stop(*process);
}

void ProcessControl::close(Process& process) {
  process.close();
  world_.at(world_.now(), [this, &process] {
    if (process.alive())
      world_.connections().for_each_end(
          process.number(), [](Connection& connection, int end) { connection.close(end); });
  });
}

void ProcessControl::stopped(Process& process) {
  StopRecord& stop = world_.recorder().trace().stops.emplace_back();
  stop.process = process.number();
  stop.acknowledged = world_.disks().acknowledged(process.number());
  const Round after = *process.stopped_after();
  for (const int peer : process.peers())
    if (world_.recorder().incarnation(peer).gave_up) stop.complete = false;
    else if (world_.protocol().participants().counts_after(peer, after))
      stop.rounds.push_back(world_.recorder().incarnation(peer).recorded.back());
  world_.recorder().log_event(
      fmt::format("process {} stops after {} rounds", process.number(), after));
  end_and_restart(process);
}

void ProcessControl::give_up(Process& process) {
  world_.at(world_.now(), [this, &process] { end_process(process, true); });
}

void ProcessControl::end_if_killed(Process& process, Round round) {
  if (!world_.disks().storage().killed(process.number())) return;
  world_.recorder().log_event(fmt::format(
      "process {} is killed while it writes the checkpoint of round {}", process.number(), round));
  world_.at(world_.now(), [this, &process] {
    if (world_.disks().storage().killed(process.number())) end_process(process, true);
  });
}

void ProcessControl::exit_if_closed(Process& process) {
  if (!process.closes() || !process.alive() || process.paused()) return;
  bool may_exit = true;
  world_.connections().for_each_end(process.number(), [&](Connection& connection, int end) {
    may_exit = may_exit && connection.closes(end) && connection.may_exit(end);
  });
  if (may_exit) end_process(process, true);
}

bool ProcessControl::has_stopped() const {
  return stop_pause_ && std::ranges::none_of(world_.processes(),
                                             [](const auto& process) { return process->alive(); });
}

}  // namespace gossamer::simulator
