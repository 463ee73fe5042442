#include "simulator/world/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.hpp"
#include "simulator/world/connection.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::gossip::sim {
namespace {

constexpr std::uint64_t kMostEvents = 20'000'000;

}  // namespace

World::World(const Scenario& scenario, const Parts& parts, std::unique_ptr<Storage> storage)
    : scenario_(scenario),
      parts_(parts),
      storage_(std::move(storage)),
      said_(static_cast<std::size_t>(scenario.processes())),
      chance_(scenario.seed, kNoPeer, Purpose::scenario, 4) {
  for (int peer = 0; peer < scenario.peers; ++peer) {
    trace_.lives.emplace_back().peer = peer;
    lives_.push_back(peer);
  }
  for (int k = 0; k < scenario.processes(); ++k)
    processes_.push_back(std::make_unique<Process>(*this, k));
  connect();
}

World::~World() {
  for (const auto& process : processes_)
    for (Connection* connection : of(process->number()))
      for (const int end : connection->ends())
        if (scenario_.homes[static_cast<std::size_t>(end)] == process->number())
          connection->ended(end, false);
  processes_.clear();
}

void World::connect() {
  for (int a = 0; a < scenario_.peers; ++a)
    for (const int b : parts_.algorithm->partners(a, *parts_.schedule))
      if (a < b && &process_of(a) != &process_of(b))
        connections_.emplace(std::pair(a, b), std::make_unique<Connection>(*this, a, b));
}

Connection& World::connection(int a, int b) { return *connections_.at(std::minmax(a, b)); }
Link& World::link(int from, int to) { return connection(from, to).link(from); }

void World::at(Time when, std::function<void()> event) {
  events_.emplace(Scheduler::TimerId{when, events_made_++}, std::move(event));
}

void World::note(std::initializer_list<std::uint64_t> words) {
  std::vector<std::uint64_t> all{trace_.hash};
  all.insert(all.end(), words);
  trace_.hash = hash64(std::as_bytes(std::span<const std::uint64_t>(all)));
}

void World::tell(const std::string& line) {
  trace_.story.push_back(fmt::format("{:10.4f}  {}", seconds(now_), line));
}

void World::note(const FloatRow& row) {
  note({hash64(std::as_bytes(std::span<const float>(row)))});
}

std::vector<Connection*> World::of(int process) {
  std::vector<Connection*> found;
  for (const auto& [ends, connection] : connections_)
    if (process_of(ends.first).number() == process || process_of(ends.second).number() == process)
      found.push_back(connection.get());
  return found;
}

template <class Act>
void World::at_each_end(const Process& process, Act act) {
  for (Connection* connection : of(process.number()))
    for (const int end : connection->ends())
      if (&process_of(end) == &process) act(*connection, end);
}

std::vector<Connection*> World::between(int process, int other) {
  std::vector<Connection*> found;
  for (Connection* connection : of(process)) {
    const auto [a, b] = connection->ends();
    if (process_of(a).number() == other || process_of(b).number() == other)
      found.push_back(connection);
  }
  return found;
}

void World::end_process(Process& process, bool told) {
  if (!process.alive()) return;
  for (const int peer : process.peers())
    life(peer).alive = life(peer).finished;  // its part is done, and as it was
  at_each_end(process, [told](Connection& connection, int end) { connection.ended(end, told); });
  process.end();
  if (process.keeps())
    storage_->end(process.number(), told             ? Outage::process
                                    : chance() < 0.5 ? Outage::old_names
                                                     : Outage::new_names);
  for (Connection* connection : of(process.number()))
    for (const int end : connection->ends()) connection->wire(end).hear();
}

void World::leave(Process& process) {
  process.leave();
  at(now(), [this, &process] {
    if (process.alive())
      at_each_end(process, [](Connection& connection, int end) { connection.leave(end); });
  });
}

void World::give_up(Process& process) {
  at(now(), [this, &process] { end_process(process, true); });
}

/// Of one that leaves, once all has come. Those who have not heard its goodbye miss it.
void World::let_go(Process& process) {
  bool may_go = true;
  at_each_end(process, [&](Connection& connection, int end) {
    may_go = may_go && connection.leaves(end) && connection.may_go(end);
  });
  if (may_go) end_process(process, true);
}

void World::save(Process& process, const SavedState& state) {
  const int number = process.number();
  const Kept kept = storage_->save(number, state);
  note({static_cast<std::uint64_t>(number), state.round, static_cast<std::uint64_t>(kept)});
  if (kept == Kept::yes) said_[static_cast<std::size_t>(number)] = state.round;
  if (kept == Kept::refused)
    trace_.complaints.push_back(fmt::format(
        "process {} kept nothing of round {}, though its disk works", number, state.round));
  if (!storage_->killed(number)) return;
  tell(fmt::format("process {} is killed while it writes the checkpoint of round {}", number,
                   state.round));
  at(now(), [this, &process] {
    if (storage_->killed(process.number())) end_process(process, true);
  });
}

std::vector<SavedState> World::look(const Process& process) {
  return trace_.disks
      .emplace_back(DiskRecord{process.number(), said_[static_cast<std::size_t>(process.number())],
                               storage_->find(process.number(), process.peers())})
      .found;
}

void World::begin_again(Process& process) {
  if (process.alive() || over() || !parts_.algorithm->needs().tolerates_peer_loss) return;
  for (const int peer : process.peers()) {
    lives_[static_cast<std::size_t>(peer)] = static_cast<int>(trace_.lives.size());
    Life& life = trace_.lives.emplace_back();
    life.peer = peer;
    life.joins = true;
  }
  process.begin_again();
  at_each_end(process, [](Connection& connection, int end) { connection.begun_again(end); });
}

bool World::over() const {
  return std::ranges::none_of(lives_, [this](int k) {
    const Life& life = trace_.lives[static_cast<std::size_t>(k)];
    return life.alive && !life.finished && !(life.joins && life.rounds.empty());
  });
}

/// Between the processes up to `last` and those beyond; else only from the former to the latter.
void World::part(int last, bool both_ways, bool stops) {
  for (const auto& [ends, connection] : connections_)
    for (const int from : connection->ends()) {
      const int to = from == ends.first ? ends.second : ends.first;
      const bool near = process_of(from).number() <= last, far = process_of(to).number() > last;
      if (near != far || (!near && !both_ways)) continue;
      if (stops) connection->stop(from);
      else connection->go(from);
    }
}

/// Stops and goes by turns, for times between 0 and twice the mean, until `end`.
void World::clog(Connection& connection, int from, Time end, Time mean) {
  const auto a_while = [this, mean] {
    return Time(std::llround(2 * chance() * static_cast<double>(mean.count())));
  };
  const Time stops = now() + a_while(), goes = stops + a_while();
  if (goes >= end) return;
  at(stops, [&connection, from] { connection.stop(from); });
  at(goes, [this, &connection, from, end, mean] {
    connection.go(from);
    clog(connection, from, end, mean);
  });
}

void World::hold_up(Process& process, Time until) {
  if (!process.alive() || process.paused()) return;
  const auto tell = [this, &process] {
    for (Connection* connection : of(process.number()))
      for (const int end : connection->ends()) connection->wire(end).hear();
  };
  process.pause(true);
  tell();
  at(until, [this, &process, tell] {
    process.pause(false);
    if (!process.alive()) return;
    tell();
    for (Connection* connection : of(process.number()))
      for (const int end : connection->ends()) {
        if (&process_of(end) != &process) connection->wire(end).listen();
        connection->wire(end).pump();
        connection->wire(end).fill();
      }
  });
}

/// Of the calls that the process's checkpoints make, one goes wrong.
void World::strike(Process& process, const Fault& fault) {
  const DiskFault what = fault.kind == FaultKind::failed_write ? DiskFault::fail
                         : fault.kind == FaultKind::torn_write ? DiskFault::tear
                                                               : DiskFault::kill;
  storage_->strike(process.number(), what, static_cast<int>(fault.amount));
}

void World::plan(const Fault& fault) {
  Process& process = *processes_[static_cast<std::size_t>(fault.process)];
  const Time begin = from_seconds(fault.at), end = begin + from_seconds(fault.lasts);
  // Of each connection with the other process: this process's end.
  const auto each = [this, fault](auto act) {
    for (Connection* connection : between(fault.process, fault.other)) {
      const auto [a, b] = connection->ends();
      act(*connection, process_of(a).number() == fault.process ? a : b,
          process_of(a).number() == fault.process ? b : a);
    }
  };
  switch (fault.kind) {
    case FaultKind::crash: return at(begin, [this, &process] { end_process(process, true); });
    case FaultKind::vanish: return at(begin, [this, &process] { end_process(process, false); });
    case FaultKind::restart:
    case FaultKind::reboot:
      return at(begin, [this, &process, fault, end] {
        if (!process.alive()) return;
        end_process(process, fault.kind == FaultKind::restart);
        at(end, [this, &process] { begin_again(process); });
      });
    case FaultKind::pause: return at(begin, [this, &process, end] { hold_up(process, end); });
    case FaultKind::slow: return;  // its steps take their time from the start
    case FaultKind::delay: {
      const auto add = [each](Time more) {
        each([more](Connection& connection, int here, int there) {
          connection.add_delay(here, more);
          connection.add_delay(there, more);
        });
      };
      at(begin, [add, fault] { add(from_seconds(fault.amount)); });
      return at(end, [add, fault] { add(-from_seconds(fault.amount)); });
    }
    case FaultKind::stall:
      at(begin,
         [each] { each([](Connection& connection, int here, int) { connection.stop(here); }); });
      return at(end, [each] {
        each([](Connection& connection, int here, int) { connection.go(here); });
      });
    case FaultKind::clog:
      return at(begin, [this, each, end, fault] {
        each([&](Connection& connection, int here, int there) {
          clog(connection, here, end, from_seconds(fault.amount));
          clog(connection, there, end, from_seconds(fault.amount));
        });
      });
    case FaultKind::partition:
    case FaultKind::deafness: {
      const bool both_ways = fault.kind == FaultKind::partition;
      at(begin, [this, fault, both_ways] { part(fault.process, both_ways, true); });
      return at(end, [this, fault, both_ways] { part(fault.process, both_ways, false); });
    }
    case FaultKind::cut:
      return at(begin, [each] {
        each([](Connection& connection, int here, int there) {
          connection.stop(here);
          connection.stop(there);
        });
      });
    case FaultKind::corrupt:
      return at(begin, [each] {
        each([](Connection& connection, int here, int) { connection.wire(here).damage(); });
      });
    case FaultKind::not_finite:
      return at(begin, [each] {
        each([](Connection& connection, int here, int) { connection.wire(here).spoil(); });
      });
    case FaultKind::clock:
      return at(begin, [&process, fault] { process.leap(from_seconds(fault.amount)); });
    case FaultKind::failed_write:
    case FaultKind::torn_write:
      return at(begin, [this, &process, fault] { strike(process, fault); });
    case FaultKind::killed_write:
      at(begin, [this, &process, fault] { strike(process, fault); });
      return at(end, [this, &process] {
        storage_->relent(process.number());
        if (storage_->killed(process.number())) begin_again(process);
      });
    case FaultKind::close:
      return at(begin, [each, &process] {
        if (!process.alive() || process.paused()) return;
        each([](Connection& connection, int here, int) { connection.broken_off(here); });
      });
    case FaultKind::slow_reader:
      at(begin, [&process, fault] { process.read_bytes_per_second = fault.amount; });
      return at(end, [&process] { process.read_bytes_per_second = 0; });
  }
}

void World::settle() {
  for (const auto& process : processes_) {
    process->settle();
    if (process->leaving() && process->alive() && !process->paused()) let_go(*process);
  }
}

bool World::step(Time limit) {
  Process* first = nullptr;
  Time next = events_.empty() ? Time::max() : events_.begin()->first.first;
  for (const auto& process : processes_)
    if (process->next() < next) {
      next = process->next();
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
  for (const Fault& fault : scenario_.fault_list()) plan(fault);
  for (const auto& process : processes_) process->start();
  settle();
  while (step(limit)) settle();
  trace_.end = now_;
  for (const auto& process : processes_)
    if (process->keeps()) look(*process);
  for (const Life& life : trace_.lives)
    for (const FloatRow& row :
         life.rounds.empty() ? std::vector<FloatRow>{} : life.rounds.back().end)
      note(row);
  return std::move(trace_);
}

}  // namespace gossamer::gossip::sim
