// The scheduler: a FIFO queue of ready coroutines, an ordered set of timers, and one source of idle
// work, run when no coroutine is ready (compute that waits to be batched). There are two:
// VirtualScheduler below, in virtual time, and net/io/real_scheduler.hpp, on Asio. The protocol
// cannot distinguish them.
#pragma once

#include <chrono>
#include <cmath>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace gossamer::gossip {

/// Time since the run's start, virtual or real.
using Time = std::chrono::nanoseconds;
inline double seconds(Time time) { return std::chrono::duration<double>(time).count(); }
/// To the nanosecond.
inline Time from_seconds(double count) { return Time(std::llround(count * 1e9)); }
inline Time from_milliseconds(double count) { return Time(std::llround(count * 1e6)); }

/// Work that the scheduler runs when nothing is ready, before it lets time pass.
class IdleWork {
 public:
  virtual ~IdleWork() = default;
  /// Does the deferred work, all of it or what may be due before `next_event` (Time::max(): no
  /// timer is set). Returns whether a coroutine may have become ready.
  virtual bool run_pending(Time next_event) = 0;
};

/// Thread: everything on one thread, the one that calls run(). Objects whose callbacks are posted
/// must outlive them or the scheduler.
class Scheduler {
 public:
  using Callback = std::function<void()>;
  using TimerId = std::pair<Time, std::uint64_t>;

  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Time since start.
  virtual Time now() const = 0;
  /// Runs until nothing is left to do, or until stop(). Work that was not run stays queued. Throws
  /// the exception of a task that is not awaited.
  virtual void run() = 0;

  /// Resumes `coroutine` after everything that was posted earlier.
  void post(std::coroutine_handle<> coroutine) { ready_.push_back(coroutine); }
  /// Calls `callback` at `when` or as soon after as possible; equal times in the order of the
  /// calls.
  TimerId at(Time when, Callback callback);
  TimerId after(Time delay, Callback callback) { return at(now() + delay, std::move(callback)); }
  /// Cancels a timer; one that has fired is no error.
  void cancel(TimerId timer) { timers_.erase(timer); }
  /// Ends run() after the callback or resumption under way.
  virtual void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  /// Has run() throw this, at once.
  void fail(std::exception_ptr failure) { failure_ = std::move(failure); }

  /// At most one; null removes it.
  void set_idle_work(IdleWork* work) { idle_work_ = work; }

 protected:
  /// Runs what is ready now, or, if nothing is, idle work due before the next timer. False when
  /// there was neither.
  bool turn();
  bool has_ready() const { return !ready_.empty(); }
  /// Turn after turn until nothing is left or stop().
  void drain();
  /// Fires the earliest timer if it is due at `now`; false if none is. Also after stop(): an
  /// orderly end still needs its deadlines.
  bool fire_due(Time now);
  /// Destroys the timers' callbacks without calling them; they may cancel other timers meanwhile.
  void drop_timers() { const auto dropped = std::exchange(timers_, {}); }
  Time next_timer() const { return timers_.empty() ? Time::max() : timers_.begin()->first.first; }

 private:
  std::vector<std::coroutine_handle<>> ready_, running_;
  std::map<TimerId, Callback> timers_;
  std::uint64_t timers_made_ = 0;
  IdleWork* idle_work_ = nullptr;
  bool stopped_ = false;
  std::exception_ptr failure_;
};

/// Virtual time: the clock jumps to the next timer when nothing is ready. Without latencies all of
/// a run happens at time 0.
class VirtualScheduler final : public Scheduler {
 public:
  Time now() const override { return now_; }
  void run() override;

 private:
  Time now_{0};
};

}  // namespace gossamer::gossip
