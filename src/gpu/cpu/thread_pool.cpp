#include "gpu/cpu/thread_pool.hpp"

#include <utility>

#include "base/check.hpp"

namespace gossamer::gpu {

ThreadPool::ThreadPool(int threads) {
  GOSSAMER_CHECK(threads >= 1, "a pool has at least its caller's thread");
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { worker_loop(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count <= 1 || workers_.empty() || busy_.test_and_set(std::memory_order_acquire)) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::exception_ptr failure;
  {
    std::unique_lock lock(mutex_);
    work_ = &work;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    failure_ = nullptr;
    ++call_;
  }
  wake_.notify_all();
  take_pieces(work);
  {
    std::unique_lock lock(mutex_);
    work_ = nullptr;  // a worker that wakes after this has nothing to do, and is not waited for
    done_.wait(lock, [this] { return active_ == 0; });
    failure = std::exchange(failure_, nullptr);
  }
  busy_.clear(std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

void ThreadPool::take_pieces(const std::function<void(std::size_t)>& work) {
  try {
    for (std::size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) work(i);
  } catch (...) {
    next_.store(count_, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::worker_loop() {
  std::uint64_t seen = 0;
  for (;;) {
    const std::function<void(std::size_t)>* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || (call_ != seen && work_ != nullptr); });
      if (stopping_) return;
      seen = call_;
      work = work_;  // the caller waits for the active ones, so it outlives this call
      ++active_;
    }
    take_pieces(*work);
    const std::lock_guard lock(mutex_);
    if (--active_ == 0) done_.notify_one();
  }
}

}  // namespace gossamer::gpu
