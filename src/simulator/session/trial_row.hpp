// A row of a session trial: as gossip::LeasedRow, with a callback in place of a coroutine that
// waits.
#pragma once

#include <functional>
#include <vector>

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

  std::vector<float> values;
  std::function<void()> on_free;

 private:
  int leases_ = 0;
  bool writer_waits_ = false;
};

}  // namespace gossamer::simulator
