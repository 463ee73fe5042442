// The scheduler of a networked peer: real time, and sockets (Asio) beside the ready queue. One
// thread runs protocol and I/O, so a byte that arrives reaches the coroutine that waits for it
// without a change of threads. Long computations run on other threads and report by
// post_external(), so that heartbeats are sent meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "gossip/scheduler.hpp"
#include "net/io/name_lookup.hpp"
#include "net/io/timer_delays.hpp"

namespace asio {
class io_context;
}

namespace gossamer::net {

/// Thread: the one that calls run(), except for post_external().
class RealScheduler final : public gossip::Scheduler {
 public:
  RealScheduler();
  ~RealScheduler() override;

  /// Real time since construction (steady).
  gossip::Time now() const override;
  /// Runs until stop(). An empty queue does not end it: a socket, a signal or post_external() may
  /// add work at any time.
  void run() override;
  /// Runs until `done()`, which is evaluated after each event, returns true, or until stop().
  void run_until(const std::function<bool()>& done);
  /// Runs sockets and timers alone until `done()` returns true: coroutines are not resumed, and
  /// stop() has no effect. For the end of a run.
  void run_io_until(const std::function<bool()>& done);

  /// Bounds on one turn of the loop, in which coroutines, timers and sockets follow each other.
  /// After this time no further generation of coroutines begins, and no further handler of a
  /// socket. There are no more handlers than these in a turn; one handles the bytes of one read of
  /// a session.
  static constexpr int kHandlersPerTurn = 64;
  static constexpr gossip::Time kTurnTime = std::chrono::milliseconds(1);

  /// Calls `callback` on the scheduler's thread. Any thread, while the scheduler exists.
  void post_external(Callback callback);
  /// Calls `callback` with each SIGINT, SIGTERM, SIGHUP or SIGUSR1 that the process receives, until
  /// the scheduler is destroyed, in place of the system's handling. A SIGHUP that the process was
  /// started to ignore (nohup) is passed on with `ignored_hangup` only. May be called once.
  void on_interrupt(std::function<void(int signal)> callback, bool ignored_hangup = false);

  /// Of all timers that have fired.
  const TimerDelays& timer_delays() const { return delays_; }

  /// For the sockets of this folder.
  asio::io_context& context();
  NameLookup& names();

 private:
  /// Fires the timers that are due now; timers that these callbacks set wait for the next turn.
  /// Returns whether any was due.
  bool fire_timers(bool until_stop);
  /// Polls sockets within the bounds of a turn; blocks on them and on timers unless `busy`.
  void poll(bool busy);

  struct Io;
  std::unique_ptr<Io> io_;
  TimerDelays delays_;
};

}  // namespace gossamer::net
