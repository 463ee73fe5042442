#include "simulator/world/world.hpp"

#include <fmt/format.h>

#include "simulator/world/connection.hpp"
#include "simulator/world/faults.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::simulator {
namespace {

constexpr std::uint64_t kMostEvents = 20'000'000;

}  // namespace

World::World(const Scenario& scenario, const Protocol& protocol, std::unique_ptr<Storage> storage)
    : scenario_(scenario),
      protocol_(protocol),
      recorder_(scenario.peers, events_),
      disks_(std::move(storage), scenario.processes(), recorder_),
      random_(scenario.seed, kNoPeer, Purpose::scenario, 4) {
  for (int k = 0; k < scenario.processes(); ++k)
    processes_.push_back(std::make_unique<Process>(*this, k));
  connections_ = std::make_unique<ConnectionTable>(*this);
}

// Connections hold leases on rows of the processes, and give them back first.
World::~World() {
  for (const auto& process : processes_)
    connections_->for_each_end(process->number(), [](Connection& connection, int end) {
      connection.process_ended(end, false);
    });
  processes_.clear();
}

void World::end_process(Process& process, bool resets) {
  if (!process.alive()) return;
  for (const int peer : process.peers()) {
    Incarnation& incarnation = recorder_.incarnation(peer);
    incarnation.alive = incarnation.finished;  // a finished peer's end changes nothing
  }
  connections_->for_each_end(process.number(), [resets](Connection& connection, int end) {
    connection.process_ended(end, resets);
  });
  process.end();
  if (process.saves_states())
    disks_.storage().end(process.number(), resets           ? Outage::process
                                           : random() < 0.5 ? Outage::old_names
                                                            : Outage::new_names);
  for (Connection* connection : connections_->of(process.number()))
    for (const int end : connection->ends()) connection->wire(end).update_silence();
}

void World::close(Process& process) {
  process.close();
  at(now(), [this, &process] {
    if (process.alive())
      connections_->for_each_end(process.number(),
                                 [](Connection& connection, int end) { connection.close(end); });
  });
}

void World::give_up(Process& process) {
  at(now(), [this, &process] { end_process(process, true); });
}

void World::end_if_killed(Process& process, Round round) {
  if (!disks_.storage().killed(process.number())) return;
  recorder_.log_event(fmt::format("process {} is killed while it writes the checkpoint of round {}",
                                  process.number(), round));
  at(now(), [this, &process] {
    if (disks_.storage().killed(process.number())) end_process(process, true);
  });
}

/// A process that closes ends once all that it sent has arrived. A peer that its closing has not
/// reached loses the link.
void World::try_exit(Process& process) {
  bool may_exit = true;
  connections_->for_each_end(process.number(), [&](Connection& connection, int end) {
    may_exit = may_exit && connection.closes(end) && connection.may_exit(end);
  });
  if (may_exit) end_process(process, true);
}

void World::restart(Process& process) {
  if (process.alive() || recorder_.is_over() ||
      !protocol_.algorithm->requirements().tolerates_peer_loss)
    return;
  for (const int peer : process.peers()) recorder_.add_incarnation(peer).joins = true;
  process.start(true);
  connections_->for_each_end(
      process.number(), [](Connection& connection, int end) { connection.process_restarted(end); });
}

void World::run_ready() {
  for (const auto& process : processes_) {
    process->run_ready();
    if (process->closes() && process->alive() && !process->paused()) try_exit(*process);
  }
}

bool World::step(Time limit) {
  Process* first = nullptr;
  Time next = events_.next();
  for (const auto& process : processes_)
    if (process->next_timer() < next) {
      next = process->next_timer();
      first = process.get();
    }
  if (next == Time::max()) return false;
  Trace& trace = recorder_.trace();
  if (next > limit || ++trace.events > kMostEvents) {
    trace.out_of_time = true;
    return false;
  }
  events_.advance(next);
  if (first != nullptr) first->fire();
  else events_.fire();
  return true;
}

Trace World::run(Time limit) {
  for (const Fault& fault : scenario_.fault_list()) schedule_fault(*this, fault);
  for (const auto& process : processes_) process->start(false);
  run_ready();
  while (step(limit)) run_ready();
  recorder_.trace().end = now();
  for (const auto& process : processes_)
    if (process->saves_states()) disks_.load(process->number(), process->peers());
  recorder_.add_final_rows_to_hash();
  return recorder_.take();
}

}  // namespace gossamer::simulator
