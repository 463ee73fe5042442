// A few threads that share independent pieces of work. Results do not depend on the thread that
// does a piece.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gossamer::gpu {

class ThreadPool {
 public:
  /// `threads` ≥ 1: threads that work at a time, the caller's included.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls work(0) … work(count − 1), in any order; all are done on return. Thread: any, and also
  /// from within `work`: when the pool is busy with another call, the caller does all of it. The
  /// first exception of `work` is rethrown here.
  void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  void worker_loop();
  void take_pieces(const std::function<void(std::size_t)>& work);

  std::vector<std::thread> workers_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;

  // The call under way: its owner writes them under mutex_ while no worker is active.
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::uint64_t call_ = 0;
  int active_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
};

}  // namespace gossamer::gpu
