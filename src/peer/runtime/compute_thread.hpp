// The thread that computes while the scheduler's thread serves the network.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/result.hpp"
#include "gossip/compute.hpp"
#include "gpu/device.hpp"
#include "net/io/real_scheduler.hpp"
#include "train/split/worker_links.hpp"

namespace gossamer::peer {

/// Runs tasks in order on its own thread, and then `done` of each on the scheduler's thread. Its
/// work gives way to that thread's, for which other processes wait. Device operations of the
/// scheduler's thread before execute() are ordered before the task's, and those of the task are
/// complete before `done`. The destructor waits for the current task and drops the others.
class ComputeThread final : public gossip::Executor {
 public:
  /// `on_failure` is called on the scheduler's thread with what a task threw: lost_peer for
  /// train::WorkerLost, and internal for any other exception, whose message it has. No further task
  /// runs after that.
  ComputeThread(net::RealScheduler& scheduler, gpu::Memory& device,
                std::function<void(Error)> on_failure)
      : scheduler_(scheduler),
        device_(device),
        on_failure_(std::move(on_failure)),
        thread_([this] { serve(); }) {}
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  ~ComputeThread() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  bool is_concurrent() const override { return true; }
  void execute(std::function<void()> work, std::function<void()> done) override {
    Task task{std::move(work), std::move(done), device_.mark()};
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

 private:
  struct Task {
    std::function<void()> work, done;
    std::shared_ptr<const void> after;  ///< the mark of the scheduler's thread
  };

  bool run(Task& task) {
    try {
      device_.wait(task.after);
      task.work();
      // Peers that get ready meanwhile train together in the next task.
      device_.finish();
    } catch (const train::WorkerLost& lost) {
      report({ErrorKind::lost_peer, lost.what()});
      return false;
    } catch (const std::exception& failure) {
      report({ErrorKind::internal, failure.what()});
      return false;
    }
    scheduler_.post_external(std::move(task.done));
    return true;
  }

  void report(Error error) {
    scheduler_.post_external([this, error = std::move(error)] { on_failure_(error); });
  }

  void serve() {
    try {
      device_.give_way();
    } catch (const std::exception& failure) {
      return report({ErrorKind::internal, failure.what()});
    }
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ended_ || !tasks_.empty(); });
      if (ended_) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      const bool served = run(task);
      lock.lock();
      if (!served) return;
    }
  }

  net::RealScheduler& scheduler_;
  gpu::Memory& device_;
  std::function<void(Error)> on_failure_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace gossamer::peer
