#include "net/io/real_scheduler.hpp"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <csignal>
#include <utility>

#include "base/check.hpp"
#include "base/signals.hpp"

namespace gossamer::net {

using Clock = std::chrono::steady_clock;

struct RealScheduler::Io {
  asio::io_context context{1};  // one thread runs it: its own posts need no lock
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  Clock::time_point start = Clock::now();
  asio::signal_set signals{context};
  std::function<void(int)> interrupt;
  NameLookup names{
      [this](std::function<void()> report) { asio::post(context, std::move(report)); }};

  void wait_for_signal() {
    signals.async_wait([this](const std::error_code& error, int signal) {
      if (error) return;
      wait_for_signal();
      interrupt(signal);
    });
  }
};

RealScheduler::RealScheduler() : io_(std::make_unique<Io>()) {}
// Callbacks of timers may own sockets, which are closed before Asio's services end.
RealScheduler::~RealScheduler() { drop_timers(); }

gossip::Time RealScheduler::now() const { return Clock::now() - io_->start; }

asio::io_context& RealScheduler::context() { return io_->context; }
NameLookup& RealScheduler::names() { return io_->names; }

void RealScheduler::run() {
  run_until([] { return false; });
}

void RealScheduler::run_until(const std::function<bool()>& done) {
  while (!stopped() && !done()) {
    bool busy = turn();
    // A message passes through several coroutines, and each poll is a system call. Idle work waits
    // for a poll, so that what has arrived meanwhile is in one batch.
    for (const auto end = Clock::now() + kTurnTime;
         has_ready() && !stopped() && !done() && Clock::now() < end;)
      turn();
    busy |= fire_timers(true);
    if (stopped() || (busy && done())) return;
    poll(busy);
  }
}

void RealScheduler::run_io_until(const std::function<bool()>& done) {
  while (!done()) poll(fire_timers(false));
}

bool RealScheduler::fire_timers(bool until_stop) {
  const gossip::Time due = now();
  bool any = false;
  while (!(until_stop && stopped()) && next_timer() <= due) {
    delays_.add(now() - next_timer());
    any |= fire_due(due);
  }
  return any;
}

void RealScheduler::poll(bool busy) {
  if (busy) {
    // Not asio's poll(): it returns when no handler is ready, and a peer that sends without a pause
    // keeps one ready.
    const auto end = Clock::now() + kTurnTime;
    for (int handlers = 0; handlers < kHandlersPerTurn; ++handlers)
      if (io_->context.poll_one() == 0 || Clock::now() >= end) return;
  } else if (next_timer() == gossip::Time::max()) {
    io_->context.run_one();
  } else {
    io_->context.run_one_until(io_->start + next_timer());
  }
}

void RealScheduler::post_external(Callback callback) {
  asio::post(io_->context, std::move(callback));
}

void RealScheduler::on_interrupt(std::function<void(int)> callback, bool ignored_hangup) {
  GOSSAMER_CHECK(!io_->interrupt, "the interrupt hook is taken");
  io_->interrupt = std::move(callback);
  io_->signals.add(SIGINT);
  io_->signals.add(SIGTERM);
  if (ignored_hangup || !is_ignored(SIGHUP)) io_->signals.add(SIGHUP);
  io_->signals.add(SIGUSR1);
  io_->wait_for_signal();
}

}  // namespace gossamer::net
