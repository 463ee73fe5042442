// The simulated world: processes, the connections between their peers, and one virtual clock.
// Everything happens in the order of time, and what falls due together in a fixed order, so a
// scenario always gives the same trace.
//
// A process runs when it is touched: something came, a timer fired, it was let go on. Only one runs
// at a time, and what it does to others goes through the world's events. It may end at any of those
// moments, with all that it has under way.
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

namespace gossamer::gossip::sim {

class Connection;
class Process;

class World {
 public:
  /// `parts` are the scenario's, and outlive the world.
  World(const Scenario& scenario, const Parts& parts, std::unique_ptr<Storage> storage);
  ~World();

  /// Runs until nothing is left to do or `limit` is reached. Once.
  Trace run(Time limit);

  // ---- for processes and connections
  Time now() const { return now_; }
  const Scenario& scenario() const { return scenario_; }
  const Parts& parts() const { return parts_; }
  Trace& trace() { return trace_; }
  /// What a peer does now, or did last.
  int life_of(int peer) const { return lives_[static_cast<std::size_t>(peer)]; }
  Life& life(int peer) { return trace_.lives[static_cast<std::size_t>(life_of(peer))]; }
  /// Nobody is left who runs and has rounds to do: whoever joins would wait for ever.
  bool over() const;
  /// Calls back at `when`, or as soon after as possible; equal times in the order of the calls.
  void at(Time when, std::function<void()> event);
  /// Adds to the trace's hash.
  void note(std::initializer_list<std::uint64_t> words);
  void note(const FloatRow& row);
  /// A line of the story.
  void tell(const std::string& line);
  /// A process is to keep a peer's state; it may be killed over it.
  void save(Process& process, const SavedState& state);
  /// What a process has kept, for the record too.
  std::vector<SavedState> look(const Process& process);
  Storage& storage() { return *storage_; }
  /// A process has done all its rounds: it ends when it has said what it had to say.
  void leave(Process& process);
  /// A process cannot go on, and ends.
  void give_up(Process& process);
  /// What chance adds, drawn in the order of the run.
  double chance() { return chance_.next_double(); }
  Process& process_of(int peer) {
    return *processes_[static_cast<std::size_t>(scenario_.homes[static_cast<std::size_t>(peer)])];
  }
  Connection& connection(int a, int b);
  /// The link from → to, of different processes.
  Link& link(int from, int to);

 private:
  void connect();
  void plan(const Fault& fault);
  void end_process(Process& process, bool told);
  void begin_again(Process& process);
  void let_go(Process& process);
  void strike(Process& process, const Fault& fault);
  void part(int last, bool both_ways, bool stops);
  void clog(Connection& connection, int from, Time end, Time mean);
  void hold_up(Process& process, Time until);
  void settle();
  bool step(Time limit);
  /// The connections between two processes, or of one with all others.
  std::vector<Connection*> between(int process, int other);
  std::vector<Connection*> of(int process);
  /// act(connection, end) for each end that the process has.
  template <class Act>
  void at_each_end(const Process& process, Act act);

  const Scenario& scenario_;
  const Parts& parts_;
  Time now_{0};
  Trace trace_;
  std::unique_ptr<Storage> storage_;
  std::vector<Round> said_;  ///< by process: the newest round whose states were said to be kept
  std::vector<int> lives_;   ///< by peer: the last of Trace::lives
  RandomStream chance_;
  std::map<Scheduler::TimerId, std::function<void()>> events_;
  std::uint64_t events_made_ = 0;
  std::map<std::pair<int, int>, std::unique_ptr<Connection>> connections_;  ///< by peers, ascending
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace gossamer::gossip::sim
