// A peer's rows as the protocol sees them: memory that is leased while it is being sent, and a
// double buffer, so that mixing writes one half while the other is sent, and sending never copies.
#pragma once

#include <coroutine>
#include <span>

#include "base/check.hpp"
#include "gossip/lease.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// A row that is written only while no lease on it is out. Not movable: leases point at it. Thread:
/// the scheduler's.
class LeasedRow final : public LeaseSource {
 public:
  LeasedRow() = default;
  LeasedRow(const LeasedRow&) = delete;
  LeasedRow& operator=(const LeasedRow&) = delete;

  /// `values` stay valid as long as this row is used.
  void attach(Scheduler& scheduler, std::span<float> values) {
    scheduler_ = &scheduler;
    values_ = values;
  }

  std::span<float> values() { return values_; }
  bool leased() const { return readers_ > 0; }

  Lease lease() override {
    ++readers_;
    return Lease(*this);
  }

  void on_lease_end() override {
    GOSSAMER_CHECK(readers_ > 0, "a lease ended twice");
    if (--readers_ == 0 && writer_) scheduler_->post(std::exchange(writer_, {}));
  }

  bool writer_waiting() const override { return writer_ != nullptr; }

  /// co_await row.writable(): until no lease is out. One waiter at a time.
  auto writable() {
    struct Awaiter {
      LeasedRow& row;
      bool await_ready() const { return !row.leased(); }
      void await_suspend(std::coroutine_handle<> waiter) {
        GOSSAMER_CHECK(!row.writer_, "two writers wait for one row");
        row.writer_ = waiter;
      }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }

 private:
  Scheduler* scheduler_ = nullptr;
  std::span<float> values_;
  int readers_ = 0;
  std::coroutine_handle<> writer_;
};

/// A row that is mixed has two halves: the front holds its value and may be leased; mixing writes
/// the back. A row that is not mixed has a front only.
class MixedRow {
 public:
  LeasedRow& front() { return halves_[front_]; }
  LeasedRow& back() { return halves_[1 - front_]; }
  std::span<float> values() { return front().values(); }
  void swap() { front_ = 1 - front_; }

 private:
  LeasedRow halves_[2];
  int front_ = 0;
};

}  // namespace gossamer::gossip
