// Links between peers of one process: chunks are handed over by pointer, after a latency and at a bandwidth in the
// scheduler's time. With neither, delivery is immediate.
#pragma once

#include <deque>
#include <functional>

#include "gossip/link.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// Bytes and chunks that a peer has sent and received, frames included.
struct Traffic {
  std::uint64_t bytes_sent = 0, bytes_received = 0;
};

/// What every link of a simulated network has.
struct LinkModel {
  Time latency{0};                ///< from the last byte sent to its arrival
  double bytes_per_second = 0;    ///< 0: without limit
};

class SimulatedLink final : public Link {
 public:
  using OnFault = std::function<void(Error)>;

  /// `sender` and `receiver_traffic` are counted at departure and arrival. All outlive the link.
  SimulatedLink(Scheduler& scheduler, Receiver& receiver, const LinkModel& model, Traffic& sender, Traffic& receiver_traffic,
                OnFault on_fault);
  ~SimulatedLink() override;

  void send(Chunk chunk) override;

 private:
  void deliver(Chunk chunk);

  Scheduler& scheduler_;
  Receiver& receiver_;
  LinkModel model_;
  Traffic& sender_;
  Traffic& receiver_traffic_;
  OnFault on_fault_;
  Time busy_until_{0};
  std::deque<Chunk> in_flight_;  ///< in order; each has a timer
};

}  // namespace gossamer::gossip
