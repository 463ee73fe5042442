#include "simulator/world/world.hpp"

#include <algorithm>

#include "simulator/world/connection.hpp"
#include "simulator/world/faults.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::simulator {
namespace {

constexpr std::uint64_t kMostEvents = 20'000'000;

}  // namespace

World::World(const Scenario& scenario, const Protocol& protocol, Disks& disks,
             std::optional<Resumption> resumption)
    : scenario_(scenario),
      protocol_(protocol),
      recorder_(scenario.peers, events_),
      disks_(disks),
      random_(scenario.seed, kNoPeer, Purpose::scenario, 4),
      control_(*this) {
  if (resumption) {
    events_.advance(resumption->at);
    for (const int peer : resumption->without) recorder_.incarnation(peer).joins = true;
  }
  recorder_.trace().resumption = std::move(resumption);
  for (const int peer : protocol.absent_at_start()) {
    recorder_.incarnation(peer).joins = true;
    recorder_.incarnation(peer).alive = false;
  }
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

void World::run_ready() {
  for (const auto& process : processes_) {
    process->run_ready();
    control_.exit_if_closed(*process);
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

void World::start() {
  for (Connection* connection : connections_->all())
    if (std::ranges::any_of(connection->ends(),
                            [this](int end) { return recorder_.incarnation(end).joins; }))
      connection->begin_down();
  for (const auto& process : processes_)
    if (recorder_.incarnation(process->peers().front()).alive) process->start();
}

void World::run(Time limit) {
  for (const Fault& fault : scenario_.fault_list()) schedule_fault(*this, fault);
  start();
  run_ready();
  while (!control_.has_stopped() && step(limit)) run_ready();
  recorder_.trace().end = now();
  recorder_.add_final_rows_to_hash();
}

}  // namespace gossamer::simulator
