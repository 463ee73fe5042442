#include "gossip/sim/simulated_link.hpp"

#include <algorithm>
#include <cmath>

namespace gossamer::gossip {

SimulatedLink::SimulatedLink(Scheduler& scheduler, Receiver& receiver, const LinkModel& model, Traffic& sender,
                             Traffic& receiver_traffic, OnFault on_fault)
    : scheduler_(scheduler),
      receiver_(receiver),
      model_(model),
      sender_(sender),
      receiver_traffic_(receiver_traffic),
      on_fault_(std::move(on_fault)) {}

SimulatedLink::~SimulatedLink() = default;

void SimulatedLink::send(Chunk chunk) {
  const std::uint64_t bytes = frame_bytes(chunk);
  sender_.bytes_sent += bytes;
  if (model_.latency == Time{0} && model_.bytes_per_second == 0) {
    deliver(std::move(chunk));
    return;
  }
  // The link sends one chunk after the other: a chunk departs when those before it have.
  const auto sending = model_.bytes_per_second == 0
                           ? Time{0}
                           : Time{std::llround(static_cast<double>(bytes) / model_.bytes_per_second * 1e9)};
  busy_until_ = std::max(busy_until_, scheduler_.now()) + sending;
  in_flight_.push_back(std::move(chunk));
  scheduler_.at(busy_until_ + model_.latency, [this] {
    Chunk first = std::move(in_flight_.front());
    in_flight_.pop_front();
    deliver(std::move(first));
  });
}

void SimulatedLink::deliver(Chunk chunk) {
  receiver_traffic_.bytes_received += frame_bytes(chunk);
  if (Status status = receiver_.deliver(std::move(chunk)); !status.ok()) on_fault_(status.error());
}

}  // namespace gossamer::gossip
