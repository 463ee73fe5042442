// task<T>: a lazy coroutine that runs on a Scheduler. Every start and every return to an awaiting
// coroutine goes through the scheduler's ready queue: nothing resumes nested, so a loop of a
// million awaits needs no stack (GCC 12 does not turn symmetric transfer into a jump below -O2 or
// under sanitizers).
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

namespace detail {

/// The promise of any task: its scheduler (its parent's, or that of start()) and the coroutine that
/// awaits it.
struct PromiseBase {
  Scheduler* scheduler = nullptr;
  std::coroutine_handle<> parent;
  std::exception_ptr exception;

  std::suspend_always initial_suspend() noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> self) noexcept {
      PromiseBase& promise = self.promise();
      if (promise.parent) promise.scheduler->post(promise.parent);
      else if (promise.exception) promise.scheduler->fail(promise.exception);
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { exception = std::current_exception(); }
};

}  // namespace detail

/// A coroutine that returns a T. Move-only; destroying it destroys the coroutine at any point of
/// suspension. Thread: its scheduler's. An exception inside is thrown by the co_await, or by the
/// scheduler's run() if the task is not awaited.
template <class T = void>
class [[nodiscard]] task;

namespace detail {

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  task<void> get_return_object();
  void return_void() {}
  void take() {}
};

}  // namespace detail

template <class T>
class [[nodiscard]] task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  task() = default;
  explicit task(Handle handle) : handle_(handle) {}
  task(task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~task() { destroy(); }

  bool done() const { return !handle_ || handle_.done(); }

  /// Starts a task that no coroutine awaits. Destroying the task before it is done cancels it.
  void start(Scheduler& scheduler) {
    handle_.promise().scheduler = &scheduler;
    scheduler.post(handle_);
  }

  /// Of a done task: its value, or its exception thrown.
  T result() {
    GOSSAMER_CHECK(handle_ && handle_.done(), "result of a task that is not done");
    if (handle_.promise().exception) std::rethrow_exception(handle_.promise().exception);
    return handle_.promise().take();
  }

  bool await_ready() const noexcept { return false; }
  template <class Parent>
  void await_suspend(std::coroutine_handle<Parent> parent) {
    promise_type& promise = handle_.promise();
    promise.scheduler = parent.promise().scheduler;
    promise.parent = parent;
    promise.scheduler->post(handle_);
  }
  T await_resume() { return result(); }

 private:
  void destroy() {
    if (handle_) handle_.destroy();
    handle_ = {};
  }

  Handle handle_;
};

namespace detail {

template <class T>
task<T> Promise<T>::get_return_object() {
  return task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}

inline task<void> Promise<void>::get_return_object() {
  return task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

}  // namespace detail

}  // namespace gossamer::gossip
