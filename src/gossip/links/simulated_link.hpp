// Links between nodes of one process: chunks are handed over by pointer, after a latency and at a
// bandwidth in the scheduler's time, which the links of a node may share. With neither, delivery is
// immediate.
#pragma once

#include <functional>
#include <list>

#include "base/philox.hpp"
#include "gossip/links/capacity.hpp"
#include "gossip/links/link.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// Bytes and chunks that a node has sent and received, frames included.
struct Traffic {
  std::uint64_t bytes_sent = 0, bytes_received = 0;
};

/// What a link of a simulated network has.
struct LinkModel {
  Time latency{0};              ///< from a byte sent to its arrival
  double bytes_per_second = 0;  ///< of the link alone; 0: without limit
  Time jitter{
      0};  ///< a chunk comes up to so much later, uniformly, and never before one sent earlier
  RandomStream jitter_draws{0, kNoPeer, Purpose::jitter};  ///< a number for each chunk
};

/// What every node of a simulated network has: capacities shared by all of its links. 0: without
/// limit.
struct NodeModel {
  double uplink_bytes_per_second = 0, downlink_bytes_per_second = 0;
};

/// One end of links in a simulated network: a node's traffic, and what its links share.
struct SimulatedPort {
  SimulatedPort() = default;
  explicit SimulatedPort(const NodeModel& model)
      : uplink(model.uplink_bytes_per_second), downlink(model.downlink_bytes_per_second) {}
  Traffic traffic;
  Capacity uplink, downlink;
};

class SimulatedLink final : public Link {
 public:
  using OnFault = std::function<void(Error)>;

  /// Bytes are counted at the sender's port at departure and at the receiver's at arrival. All
  /// outlive the link.
  SimulatedLink(Scheduler& scheduler, Receiver& receiver, const LinkModel& model,
                SimulatedPort& from, SimulatedPort& to, OnFault on_fault);
  ~SimulatedLink() override;

  void send(Chunk chunk) override;

 private:
  void enter_downlink(Capacity::Passage passage, std::uint64_t bytes);
  void deliver_first();

  Scheduler& scheduler_;
  Receiver& receiver_;
  LinkModel model_;
  SimulatedPort& from_;
  SimulatedPort& to_;
  OnFault on_fault_;
  Capacity capacity_;
  Capacity::Passage last_{};    ///< when the chunk sent last comes
  std::list<Chunk> in_flight_;  ///< in order; each has a timer. No memory while there is none: most
                                ///< links are idle
};

}  // namespace gossamer::gossip
