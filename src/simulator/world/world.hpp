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
#include <optional>
#include <utility>
#include <vector>

#include "base/philox.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/storage/disks.hpp"
#include "simulator/world/connection_table.hpp"
#include "simulator/world/event_queue.hpp"
#include "simulator/world/process_control.hpp"
#include "simulator/world/trace_recorder.hpp"

namespace gossamer::simulator {

class Process;

class World {
 public:
  /// All references outlive the world. `protocol` is the scenario's. `resumption`: the network was
  /// stopped as a whole, and resumes; `disks` are as it left them.
  World(const Scenario& scenario, const Protocol& protocol, Disks& disks,
        std::optional<Resumption> resumption = {});
  ~World();

  /// Runs until no event is left, the network has stopped, or `limit` is reached. Once. The trace
  /// is complete but for what the disks hold.
  void run(Time limit);

  const Scenario& scenario() const { return scenario_; }
  const Protocol& protocol() const { return protocol_; }
  TraceRecorder& recorder() { return recorder_; }
  Disks& disks() { return disks_; }
  ConnectionTable& connections() { return *connections_; }
  ProcessControl& control() { return control_; }
  Process& process_of(int peer) {
    return *processes_[static_cast<std::size_t>(
        scenario_.placement[static_cast<std::size_t>(peer)])];
  }
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
  Process& process(int number) { return *processes_[static_cast<std::size_t>(number)]; }

  bool tolerates_loss() const { return protocol_.algorithm->requirements().tolerates_peer_loss; }

  Time now() const { return events_.now(); }
  /// EventQueue::at().
  void at(Time when, std::function<void()> event) { events_.at(when, std::move(event)); }
  /// A random number in [0, 1), drawn in the order of the run.
  double random() { return random_.next_double(); }

 private:
  void start();
  void run_ready();
  bool step(Time limit);

  const Scenario& scenario_;
  const Protocol& protocol_;
  EventQueue events_;
  TraceRecorder recorder_;
  Disks& disks_;
  RandomStream random_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::unique_ptr<ConnectionTable> connections_;  ///< made after the processes
  ProcessControl control_;
};

}  // namespace gossamer::simulator
