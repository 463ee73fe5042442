#include "simulator/world/faults.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <vector>

#include "simulator/world/connection.hpp"
#include "simulator/world/process.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::simulator {
namespace {

/// A connection between the fault's process, whose end is `here`, and its other process.
using OnConnection = std::function<void(Connection& connection, int here, int there)>;

void for_each_connection(World& world, const Fault& fault, const OnConnection& act) {
  const auto number_of = [&world](int peer) { return world.process_of(peer).number(); };
  for (Connection* connection : world.connections().of(fault.process)) {
    const auto [a, b] = connection->ends();
    if (number_of(a) != fault.other && number_of(b) != fault.other) continue;
    if (number_of(a) == fault.process) act(*connection, a, b);
    else act(*connection, b, a);
  }
}

/// act at `when`, on each connection between the fault's two processes.
void at(World& world, Time when, const Fault& fault, OnConnection act) {
  world.at(when, [&world, fault, act = std::move(act)] { for_each_connection(world, fault, act); });
}

/// Blocks or unblocks the ways between the processes up to `last` and the processes beyond; or only
/// those from the former to the latter.
void set_partition(World& world, int last, bool both_ways, bool blocked) {
  for (Connection* connection : world.connections().all())
    for (const int from : connection->ends()) {
      const auto [a, b] = connection->ends();
      const int to = from == a ? b : a;
      const bool near = world.process_of(from).number() <= last,
                 far = world.process_of(to).number() > last;
      if (near != far || (!near && !both_ways)) continue;
      connection->set_blocked(from, blocked);
    }
}

/// Blocks and unblocks a direction by turns, for times between 0 and twice the mean, until `end`.
void clog(World& world, Connection& connection, int from, Time end, Time mean) {
  const auto draw = [&world, mean] {
    return Time(std::llround(2 * world.random() * static_cast<double>(mean.count())));
  };
  const Time blocked = world.now() + draw(), unblocked = blocked + draw();
  if (unblocked >= end) return;
  world.at(blocked, [&connection, from] { connection.set_blocked(from, true); });
  world.at(unblocked, [&world, &connection, from, end, mean] {
    connection.set_blocked(from, false);
    clog(world, connection, from, end, mean);
  });
}

void pause(World& world, Process& process, Time until) {
  if (!process.alive() || process.paused()) return;
  const auto update_silence = [&world, &process] {
    for (Connection* connection : world.connections().of(process.number()))
      for (const int end : connection->ends()) connection->wire(end).update_silence();
  };
  process.pause(true);
  update_silence();
  world.at(until, [&world, &process, update_silence] {
    process.pause(false);
    if (!process.alive()) return;
    update_silence();
    for (Connection* connection : world.connections().of(process.number()))
      for (const int end : connection->ends()) {
        if (&world.process_of(end) != &process) connection->wire(end).restart_failure_timer();
        connection->wire(end).deliver_arrived();
        connection->wire(end).transmit();
      }
  });
}

void inject(World& world, const Fault& fault) {
  const DiskFault what = fault.kind == FaultKind::failed_write ? DiskFault::fail
                         : fault.kind == FaultKind::torn_write ? DiskFault::tear
                                                               : DiskFault::kill;
  world.disks().storage().inject(fault.process, what, static_cast<int>(fault.amount));
}

void schedule_process_fault(World& world, const Fault& fault, Time begin, Time end) {
  Process& process = world.process(fault.process);
  switch (fault.kind) {
    case FaultKind::crash:
    case FaultKind::vanish:
      return world.at(begin, [&world, &process, fault] {
        world.control().end_process(process, fault.kind == FaultKind::crash);
      });
    case FaultKind::restart:
    case FaultKind::reboot:
      return world.at(begin, [&world, &process, fault, end] {
        if (!process.alive()) return;
        world.control().end_process(process, fault.kind == FaultKind::restart);
        world.at(end, [&world, &process] { world.control().restart(process); });
      });
    case FaultKind::pause:
      return world.at(begin, [&world, &process, end] { pause(world, process, end); });
    case FaultKind::clock:
      return world.at(begin,
                      [&process, fault] { process.advance_clock(from_seconds(fault.amount)); });
    case FaultKind::failed_write:
    case FaultKind::torn_write: return world.at(begin, [&world, fault] { inject(world, fault); });
    case FaultKind::killed_write:
      world.at(begin, [&world, fault] { inject(world, fault); });
      return world.at(end, [&world, &process] {
        world.disks().storage().clear_fault(process.number());
        if (world.disks().storage().killed(process.number())) world.control().restart(process);
      });
    case FaultKind::interrupt:
      return world.at(begin, [&world, &process, pause = end - begin] {
        world.control().interrupt(process, pause);
      });
    case FaultKind::interrupt_all:
      return world.at(begin,
                      [&world, pause = end - begin] { world.control().interrupt_all(pause); });
    case FaultKind::arrive:
      return world.at(begin, [&world, &process] { world.control().restart(process); });
    case FaultKind::leave:
      return world.at(begin, [&world, &process] { world.control().leave(process); });
    case FaultKind::slow_reader:
      world.at(begin, [&process, fault] { process.read_bytes_per_second = fault.amount; });
      return world.at(end, [&process] { process.read_bytes_per_second = 0; });
    default: return;  // FaultKind::slow: the process's steps take their time from the start
  }
}

void schedule_link_fault(World& world, const Fault& fault, Time begin, Time end) {
  switch (fault.kind) {
    case FaultKind::delay: {
      const auto add = [](Time more) {
        return [more](Connection& connection, int here, int there) {
          connection.add_delay(here, more);
          connection.add_delay(there, more);
        };
      };
      at(world, begin, fault, add(from_seconds(fault.amount)));
      return at(world, end, fault, add(-from_seconds(fault.amount)));
    }
    case FaultKind::stall:
      at(world, begin, fault,
         [](Connection& connection, int here, int) { connection.set_blocked(here, true); });
      return at(world, end, fault,
                [](Connection& connection, int here, int) { connection.set_blocked(here, false); });
    case FaultKind::clog:
      return at(world, begin, fault,
                [&world, fault, end](Connection& connection, int here, int there) {
                  clog(world, connection, here, end, from_seconds(fault.amount));
                  clog(world, connection, there, end, from_seconds(fault.amount));
                });
    case FaultKind::cut:
      return at(world, begin, fault, [](Connection& connection, int here, int there) {
        connection.set_blocked(here, true);
        connection.set_blocked(there, true);
      });
    case FaultKind::corrupt:
      return at(world, begin, fault, [](Connection& connection, int here, int) {
        connection.wire(here).corrupt_next_frame();
      });
    case FaultKind::not_finite:
      return at(world, begin, fault, [](Connection& connection, int here, int) {
        connection.wire(here).poison_next_row();
      });
    default:  // FaultKind::close
      return world.at(begin, [&world, fault] {
        const Process& process = world.process(fault.process);
        if (!process.alive() || process.paused()) return;
        for_each_connection(world, fault, [](Connection& connection, int here, int there) {
          connection.lose(here, fmt::format("the connection to peer {} broke", there), true);
        });
      });
  }
}

}  // namespace

void schedule_fault(World& world, const Fault& fault) {
  const Time begin = from_seconds(fault.at), end = begin + from_seconds(fault.lasts);
  if (begin < world.now()) return;  // it belongs to the time before the network was stopped
  if (fault.kind == FaultKind::partition || fault.kind == FaultKind::one_way_partition) {
    const bool both_ways = fault.kind == FaultKind::partition;
    const auto set = [&world, fault, both_ways](bool blocked) {
      set_partition(world, fault.process, both_ways, blocked);
    };
    world.at(begin, [set] { set(true); });
    world.at(end, [set] { set(false); });
  } else if (spec_of(fault.kind).other) {
    schedule_link_fault(world, fault, begin, end);
  } else {
    schedule_process_fault(world, fault, begin, end);
  }
}

}  // namespace gossamer::simulator
