// The simulated world: processes, the connections between their peers, their disks, and one virtual
// clock. Events happen in the order of time, and events of one time in a fixed order, so a scenario
// always gives the same trace.
//
// A process runs when it is woken: a message arrived, a timer fired, or a pause ended. Only one
// process runs at a time, and it acts on others through the world's events alone. It may end
// between any two of these moments, with all its work in progress.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/philox.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/world/connection_table.hpp"
#include "simulator/world/disks.hpp"
#include "simulator/world/event_queue.hpp"
#include "simulator/world/trace_recorder.hpp"

namespace gossamer::simulator {

class Process;

class World {
 public:
  /// `protocol` is the scenario's, and outlives the world.
  World(const Scenario& scenario, const Protocol& protocol, std::unique_ptr<Storage> storage);
  ~World();

  /// Runs until no event is left or `limit` is reached. Once.
  Trace run(Time limit);

  const Scenario& scenario() const { return scenario_; }
  const Protocol& protocol() const { return protocol_; }
  TraceRecorder& recorder() { return recorder_; }
  Disks& disks() { return disks_; }
  ConnectionTable& connections() { return *connections_; }
  Process& process_of(int peer) {
    return *processes_[static_cast<std::size_t>(
        scenario_.placement[static_cast<std::size_t>(peer)])];
  }
  Process& process(int number) { return *processes_[static_cast<std::size_t>(number)]; }

  Time now() const { return events_.now(); }
  /// EventQueue::at().
  void at(Time when, std::function<void()> event) { events_.at(when, std::move(event)); }
  /// A random number in [0, 1), drawn in the order of the run.
  double random() { return random_.next_double(); }

  // ---- the ends of processes
  /// A process has done all its rounds: it ends once all that it has sent has arrived.
  void close(Process& process);
  /// A process cannot go on, and ends as soon as its call has returned.
  void give_up(Process& process);
  /// The same, if a disk fault killed the process while it wrote the checkpoint of `round`.
  void end_if_killed(Process& process, Round round);
  /// A process ends here and now. `resets`: its machine goes on, and resets its connections.
  void end_process(Process& process, bool resets);
  /// Restarts a process that has ended; its peers join. Does nothing where no running peer is left.
  void restart(Process& process);

 private:
  void try_exit(Process& process);
  void run_ready();
  bool step(Time limit);

  const Scenario& scenario_;
  const Protocol& protocol_;
  EventQueue events_;
  TraceRecorder recorder_;
  Disks disks_;
  RandomStream random_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::unique_ptr<ConnectionTable> connections_;  ///< made after the processes
};

}  // namespace gossamer::simulator
