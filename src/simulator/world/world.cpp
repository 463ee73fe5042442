#include "simulator/world/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.hpp"
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
      storage_(std::move(storage)),
      acknowledged_(static_cast<std::size_t>(scenario.processes())),
      random_(scenario.seed, kNoPeer, Purpose::scenario, 4) {
  for (int peer = 0; peer < scenario.peers; ++peer) {
    trace_.incarnations.emplace_back().peer = peer;
    current_.push_back(peer);
  }
  for (int k = 0; k < scenario.processes(); ++k)
    processes_.push_back(std::make_unique<Process>(*this, k));
  connect();
}

// Connections hold leases on rows of the processes, and give them back first.
World::~World() {
  for (const auto& process : processes_)
    for_each_end(*process,
                 [](Connection& connection, int end) { connection.process_ended(end, false); });
  processes_.clear();
}

void World::connect() {
  for (int a = 0; a < scenario_.peers; ++a)
    for (const int b : protocol_.algorithm->partners(a, *protocol_.schedule))
      if (a < b && &process_of(a) != &process_of(b))
        connections_.emplace(std::pair(a, b), std::make_unique<Connection>(*this, a, b));
}

Connection& World::connection(int a, int b) { return *connections_.at(std::minmax(a, b)); }
Link& World::link(int from, int to) { return connection(from, to).link(from); }

void World::at(Time when, std::function<void()> event) {
  events_.emplace(Scheduler::TimerId{when, events_made_++}, std::move(event));
}

void World::add_to_hash(std::initializer_list<std::uint64_t> words) {
  std::vector<std::uint64_t> all{trace_.hash};
  all.insert(all.end(), words);
  trace_.hash = hash64(std::as_bytes(std::span<const std::uint64_t>(all)));
}

void World::log_event(const std::string& line) {
  trace_.event_log.push_back(fmt::format("{:10.4f}  {}", seconds(now_), line));
}

std::vector<Connection*> World::connections() {
  std::vector<Connection*> all;
  for (const auto& [ends, connection] : connections_) all.push_back(connection.get());
  return all;
}

std::vector<Connection*> World::connections_of(int process) {
  std::vector<Connection*> found;
  for (const auto& [ends, connection] : connections_)
    if (process_of(ends.first).number() == process || process_of(ends.second).number() == process)
      found.push_back(connection.get());
  return found;
}

template <class Act>
void World::for_each_end(const Process& process, Act act) {
  for (Connection* connection : connections_of(process.number()))
    for (const int end : connection->ends())
      if (&process_of(end) == &process) act(*connection, end);
}

void World::end_process(Process& process, bool resets) {
  if (!process.alive()) return;
  for (const int peer : process.peers())
    incarnation(peer).alive = incarnation(peer).finished;  // a finished peer's end changes nothing
  for_each_end(process, [resets](Connection& connection, int end) {
    connection.process_ended(end, resets);
  });
  process.end();
  if (process.saves_states())
    storage_->end(process.number(), resets           ? Outage::process
                                    : random() < 0.5 ? Outage::old_names
                                                     : Outage::new_names);
  for (Connection* connection : connections_of(process.number()))
    for (const int end : connection->ends()) connection->wire(end).update_silence();
}

void World::close(Process& process) {
  process.close();
  at(now(), [this, &process] {
    if (process.alive())
      for_each_end(process, [](Connection& connection, int end) { connection.close(end); });
  });
}

void World::give_up(Process& process) {
  at(now(), [this, &process] { end_process(process, true); });
}

/// A process that closes ends once all that it sent has arrived. A peer that its closing has not
/// reached loses the link.
void World::try_exit(Process& process) {
  bool may_exit = true;
  for_each_end(process, [&](Connection& connection, int end) {
    may_exit = may_exit && connection.closes(end) && connection.may_exit(end);
  });
  if (may_exit) end_process(process, true);
}

void World::save(Process& process, const SavedState& state) {
  const int number = process.number();
  const SaveResult result = storage_->save(number, state);
  add_to_hash(
      {static_cast<std::uint64_t>(number), state.round, static_cast<std::uint64_t>(result)});
  if (result == SaveResult::saved) acknowledged_[static_cast<std::size_t>(number)] = state.round;
  if (result == SaveResult::refused)
    trace_.errors.push_back(fmt::format(
        "process {} saved nothing of round {}, though its disk works", number, state.round));
  if (!storage_->killed(number)) return;
  log_event(fmt::format("process {} is killed while it writes the checkpoint of round {}", number,
                        state.round));
  at(now(), [this, &process] {
    if (storage_->killed(process.number())) end_process(process, true);
  });
}

std::vector<SavedState> World::load_states(const Process& process) {
  const auto number = static_cast<std::size_t>(process.number());
  return trace_.disks
      .emplace_back(DiskRecord{process.number(), acknowledged_[number],
                               storage_->load(process.number(), process.peers())})
      .found;
}

void World::restart(Process& process) {
  if (process.alive() || is_over() || !protocol_.algorithm->requirements().tolerates_peer_loss)
    return;
  for (const int peer : process.peers()) {
    current_[static_cast<std::size_t>(peer)] = static_cast<int>(trace_.incarnations.size());
    Incarnation& next = trace_.incarnations.emplace_back();
    next.peer = peer;
    next.joins = true;
  }
  process.restart();
  for_each_end(process, [](Connection& connection, int end) { connection.process_restarted(end); });
}

bool World::is_over() const {
  return std::ranges::none_of(current_, [this](int k) {
    const Incarnation& peer = trace_.incarnations[static_cast<std::size_t>(k)];
    return peer.alive && !peer.finished && !(peer.joins && peer.rounds.empty());
  });
}

void World::run_ready() {
  for (const auto& process : processes_) {
    process->run_ready();
    if (process->closes() && process->alive() && !process->paused()) try_exit(*process);
  }
}

bool World::step(Time limit) {
  Process* first = nullptr;
  Time next = events_.empty() ? Time::max() : events_.begin()->first.first;
  for (const auto& process : processes_)
    if (process->next_timer() < next) {
      next = process->next_timer();
      first = process.get();
    }
  if (next == Time::max()) return false;
  if (next > limit || ++trace_.events > kMostEvents) {
    trace_.out_of_time = true;
    return false;
  }
  now_ = std::max(now_, next);
  if (first != nullptr) {
    first->fire();
  } else {
    auto event = events_.extract(events_.begin());
    event.mapped()();
  }
  return true;
}

Trace World::run(Time limit) {
  for (const Fault& fault : scenario_.fault_list()) schedule_fault(*this, fault);
  for (const auto& process : processes_) process->start();
  run_ready();
  while (step(limit)) run_ready();
  trace_.end = now_;
  for (const auto& process : processes_)
    if (process->saves_states()) load_states(*process);
  for (const Incarnation& incarnation : trace_.incarnations) {
    if (incarnation.rounds.empty()) continue;
    for (const FloatRow& row : incarnation.rounds.back().end)
      add_to_hash({hash64(std::as_bytes(std::span<const float>(row)))});
  }
  return std::move(trace_);
}

}  // namespace gossamer::simulator
