// The scheduler of a networked peer: real time, and sockets (Asio) beside the ready queue. One
// thread does protocol and I/O, so a byte that arrives reaches the coroutine that waits for it
// without changing threads; what takes long is computed elsewhere and reported by post_external(),
// so heartbeats flow meanwhile.
#pragma once

#include <functional>
#include <memory>

#include "gossip/scheduler.hpp"

namespace asio {
class io_context;
}

namespace gossamer::net {

/// Thread: the one that calls run(), but for post_external().
class RealScheduler final : public gossip::Scheduler {
 public:
  RealScheduler();
  ~RealScheduler() override;

  /// Real time since construction (steady).
  gossip::Time now() const override;
  /// Runs until stop(): a socket, a signal or post_external() may bring something to do at any
  /// time.
  void run() override;
  /// Runs until `done()` is true, asked after each event, or until stop().
  void run_until(const std::function<bool()>& done);
  /// The same for sockets and timers alone: coroutines stay where they are, and stop() does not
  /// count. For the end of a run.
  void run_io_until(const std::function<bool()>& done);

  /// Calls `callback` on the scheduler's thread. Any thread may ask, while the scheduler lives.
  void post_external(Callback callback);
  /// Calls `callback` with each SIGINT, SIGTERM or SIGHUP that the process gets, from now to the
  /// scheduler's end, in place of the system's own handling. Once.
  void on_interrupt(std::function<void(int signal)> callback);

  /// For the sockets of this folder.
  asio::io_context& context();

 private:
  /// Sockets and timers once; waits for them if nothing else is to be done.
  void attend(bool busy);

  struct Io;
  std::unique_ptr<Io> io_;
};

}  // namespace gossamer::net
