// A row of a session trial: as gossip::LeasedRow, with a callback in place of a coroutine that
// waits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/shared_memory.hpp"
#include "gossip/lease.hpp"

namespace gossamer::simulator {

/// Thread: the scheduler's.
class TrialRow final : public gossip::BufferOwner {
 public:
  void on_lease_end() override {
    if (--leases_ > 0 || !writer_waits_) return;
    writer_waits_ = false;
    on_free();
  }
  bool writer_waiting() const override { return writer_waits_; }
  bool free() const { return leases_ == 0; }
  /// on_free() is called once no lease is left.
  void wait_until_free() { writer_waits_ = true; }
  gossip::Lease lease() {
    ++leases_;
    return gossip::Lease(*this);
  }

  /// Values that the row has room for, in `memory` or, if that is null, in the row's own.
  void reserve(SharedMemory* memory, std::size_t count) {
    own_.resize(memory == nullptr ? count : 0);
    room_ = {memory == nullptr ? own_.data()
                               : static_cast<float*>(memory->allocate(count * sizeof(float))),
             count};
  }
  std::span<float> resize(std::size_t count) { return values = room_.first(count); }

  std::span<float> values;
  std::function<void()> on_free;

 private:
  std::vector<float> own_;
  std::span<float> room_;
  int leases_ = 0;
  bool writer_waits_ = false;
};

}  // namespace gossamer::simulator
