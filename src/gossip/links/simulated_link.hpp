// Links between nodes of one process: chunks are passed by pointer, after a latency and at a
// bandwidth in the scheduler's time; the links of a node may share capacities. With neither,
// delivery is immediate.
#pragma once

#include <functional>
#include <list>

#include "base/philox.hpp"
#include "gossip/link.hpp"
#include "gossip/links/capacity.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// Bytes that a node has sent and received, frame headers included.
struct ByteCounters {
  std::uint64_t bytes_sent = 0, bytes_received = 0;
};

/// The properties of a link of a simulated network.
struct LinkModel {
  Time latency{0};              ///< from a byte sent to its arrival
  double bytes_per_second = 0;  ///< of the link alone; 0: without limit
  Time jitter{0};  ///< largest additional delay of a chunk, uniform; chunks keep their order
  RandomStream jitter_draws{0, kNoPeer, Purpose::jitter};  ///< a number for each chunk
};

/// The capacities of every node of a simulated network, shared by all of its links. 0: without
/// limit.
struct NodeModel {
  double uplink_bytes_per_second = 0, downlink_bytes_per_second = 0;
};

/// A node's end of its links: its byte counters, and the capacities that the links share.
struct SimulatedPort {
  SimulatedPort() = default;
  explicit SimulatedPort(const NodeModel& model)
      : uplink(model.uplink_bytes_per_second), downlink(model.downlink_bytes_per_second) {}
  ByteCounters traffic;
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
  Capacity::Passage last_{};    ///< when the chunk sent last arrives
  std::list<Chunk> in_flight_;  ///< in order; each has a timer. No memory while there is none: most
                                ///< links are idle
};

}  // namespace gossamer::gossip
