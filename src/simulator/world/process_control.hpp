// How processes of a simulated world end, and start again: by faults, by their own choice, and
// because an operator asks them to stop.
#pragma once

#include <map>
#include <optional>

#include "gossip/link.hpp"
#include "gossip/scheduler.hpp"
#include "simulator/names.hpp"

namespace gossamer::simulator {

class Process;
class World;

class ProcessControl {
 public:
  /// The world outlives this object.
  explicit ProcessControl(World& world) : world_(world) {}

  // ---- for faults
  /// A process ends here and now. `resets`: its machine goes on, and resets its connections.
  void end_process(Process& process, bool resets);
  /// Restarts a process that has ended; its peers join. Does nothing where no running peer is left.
  void restart(Process& process);
  /// A process is asked to stop. It is restarted `pause` after it has ended.
  void interrupt(Process& process, Time pause);
  /// The peer of a process of an open run leaves for good, if it takes part or joins.
  void leave(Process& process);
  /// All processes are asked to stop. The network resumes `pause` after the last one has ended.
  /// Does nothing once a process has done its rounds.
  void interrupt_all(Time pause);

  // ---- for processes
  /// A process has done all its rounds: it ends once all that it has sent has arrived.
  void close(Process& process);
  /// A process that was interrupted has stopped, and ends as soon as its call has returned.
  void stopped(Process& process);
  /// The same for a process that cannot go on.
  void give_up(Process& process);
  /// The same, if a disk fault killed the process while it wrote the checkpoint of `round`.
  void end_if_killed(Process& process, Round round);

  // ---- for the world
  /// A process that closes ends once all that it sent has arrived. A peer that its closing has not
  /// reached loses the link.
  void exit_if_closed(Process& process);
  /// All processes were asked to stop, and have ended.
  bool has_stopped() const;
  /// Between the end of the last process and the resumption.
  std::optional<Time> stop_pause() const { return stop_pause_; }

 private:
  void ask_to_stop(Process& process);
  void end_and_restart(Process& process);

  World& world_;
  std::map<int, Time> restart_pauses_;  ///< by process that was interrupted
  std::optional<Time> stop_pause_;
};

}  // namespace gossamer::simulator
