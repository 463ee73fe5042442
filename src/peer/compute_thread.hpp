// The thread that trains while the scheduler's thread talks to the network.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "gossip/compute.hpp"
#include "net/real_scheduler.hpp"

namespace gossamer::peer {

/// Runs work in order on a thread of its own; `done` follows on the scheduler's. Its end waits for the work under way and
/// drops the rest.
class ComputeThread final : public gossip::Executor {
 public:
  explicit ComputeThread(net::RealScheduler& scheduler) : scheduler_(scheduler), thread_([this] { serve(); }) {}
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

  void execute(std::function<void()> work, std::function<void()> done) override {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back({std::move(work), std::move(done)});
    }
    wake_.notify_one();
  }

 private:
  struct Task {
    std::function<void()> work, done;
  };

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ended_ || !tasks_.empty(); });
      if (ended_) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task.work();
      scheduler_.post_external(std::move(task.done));
      lock.lock();
    }
  }

  net::RealScheduler& scheduler_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace gossamer::peer
