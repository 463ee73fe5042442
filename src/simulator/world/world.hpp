// The simulated world: processes, the connections between their peers, and one virtual clock.
// Events happen in the order of time, and events of one time in a fixed order, so a scenario always
// gives the same trace.
//
// A process runs when it is woken: a message arrived, a timer fired, or a pause ended. Only one
// process runs at a time, and it acts on others through the world's events alone. It may end
// between any two of these moments, with all its work in progress.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/philox.hpp"
#include "gossip/scheduler.hpp"
#include "simulator/world/scenario.hpp"
#include "simulator/world/storage.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

class Connection;
class Process;

class World {
 public:
  /// `protocol` is the scenario's, and outlives the world.
  World(const Scenario& scenario, const Protocol& protocol, std::unique_ptr<Storage> storage);
  ~World();

  /// Runs until no event is left or `limit` is reached. Once.
  Trace run(Time limit);

  // ---- for processes and connections
  Time now() const { return now_; }
  const Scenario& scenario() const { return scenario_; }
  const Protocol& protocol() const { return protocol_; }
  Trace& trace() { return trace_; }
  /// The index in Trace::incarnations of the peer's current incarnation, or of its last one.
  int incarnation_of(int peer) const { return current_[static_cast<std::size_t>(peer)]; }
  Incarnation& incarnation(int peer) {
    return trace_.incarnations[static_cast<std::size_t>(incarnation_of(peer))];
  }
  /// No peer is left that has begun and has rounds to do: a peer that joined would wait for ever.
  bool is_over() const;
  /// Calls back at `when`, or as soon after as possible; equal times in the order of the calls.
  void at(Time when, std::function<void()> event);
  /// Adds to the trace's hash.
  void add_to_hash(std::initializer_list<std::uint64_t> words);
  /// Adds a line to the event log.
  void log_event(const std::string& line);
  /// A process saves a peer's state; a disk fault may kill it there.
  void save(Process& process, const SavedState& state);
  /// What a process has saved. The trace records it too.
  std::vector<SavedState> load_states(const Process& process);
  Storage& storage() { return *storage_; }
  /// A process has done all its rounds: it ends once all that it has sent has arrived.
  void close(Process& process);
  /// A process cannot go on, and ends.
  void give_up(Process& process);

  // ---- for faults
  /// A process ends here and now. `resets`: its machine goes on, and resets its connections.
  void end_process(Process& process, bool resets);
  /// Restarts a process that has ended; its peers join. Does nothing where no running peer is left.
  void restart(Process& process);
  std::vector<Connection*> connections();
  std::vector<Connection*> connections_of(int process);
  /// A random number in [0, 1), drawn in the order of the run.
  double random() { return random_.next_double(); }
  Process& process_of(int peer) {
    return *processes_[static_cast<std::size_t>(
        scenario_.placement[static_cast<std::size_t>(peer)])];
  }
  Process& process(int number) { return *processes_[static_cast<std::size_t>(number)]; }
  Connection& connection(int a, int b);
  /// The link from → to, of different processes.
  Link& link(int from, int to);

 private:
  void connect();
  void try_exit(Process& process);
  void run_ready();
  bool step(Time limit);
  /// act(connection, end) for each end that the process has.
  template <class Act>
  void for_each_end(const Process& process, Act act);

  const Scenario& scenario_;
  const Protocol& protocol_;
  Time now_{0};
  Trace trace_;
  std::unique_ptr<Storage> storage_;
  std::vector<Round> acknowledged_;  ///< by process: the newest round whose states were saved
  std::vector<int> current_;         ///< by peer: its last of Trace::incarnations
  RandomStream random_;
  std::map<Scheduler::TimerId, std::function<void()>> events_;
  std::uint64_t events_made_ = 0;
  std::map<std::pair<int, int>, std::unique_ptr<Connection>> connections_;  ///< by peers, ascending
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace gossamer::simulator
