// A row of a trial: gossip::LeasedRow with a callback, for one who does not wait in a coroutine.
#pragma once

#include <functional>
#include <vector>

#include "gossip/lease.hpp"

namespace gossamer::net::sim {

/// Sent, and written as soon as nobody reads it any more. Thread: the scheduler's.
class Row final : public gossip::BufferOwner {
 public:
  void give_back() override {
    if (--leases_ > 0 || !wanted_) return;
    wanted_ = false;
    on_free();
  }
  bool writer_waiting() const override { return wanted_; }
  bool free() const { return leases_ == 0; }
  void want() { wanted_ = true; }
  gossip::Lease lend() {
    ++leases_;
    return gossip::Lease(*this);
  }

  std::vector<float> values;
  std::function<void()> on_free;

 private:
  int leases_ = 0;
  bool wanted_ = false;
};

}  // namespace gossamer::net::sim
