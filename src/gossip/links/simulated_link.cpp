#include "gossip/links/simulated_link.hpp"

#include <algorithm>
#include <cmath>

namespace gossamer::gossip {

SimulatedLink::SimulatedLink(Scheduler& scheduler, Receiver& receiver, const LinkModel& model,
                             SimulatedPort& from, SimulatedPort& to, OnFault on_fault)
    : scheduler_(scheduler),
      receiver_(receiver),
      model_(model),
      from_(from),
      to_(to),
      on_fault_(std::move(on_fault)),
      capacity_(model.bytes_per_second) {}

SimulatedLink::~SimulatedLink() = default;

void SimulatedLink::send(Chunk chunk) {
  const std::uint64_t bytes = frame_bytes(chunk);
  from_.traffic.bytes_sent += bytes;
  const Time now = scheduler_.now();
  Capacity::Passage passage = capacity_.pass(from_.uplink.pass({now, now}, bytes), bytes);
  Time delay = model_.latency;
  if (model_.jitter > Time{0})
    delay += Time(std::llround(static_cast<double>(model_.jitter.count()) *
                               model_.jitter_draws.next_double()));
  passage = last_ = {std::max(last_.first, passage.first + delay),
                     std::max(last_.last, passage.last + delay)};
  in_flight_.push_back(std::move(chunk));
  // The receiver's down-link serves chunks in the order of arrival, from all senders.
  if (passage.first > now)
    scheduler_.at(passage.first, [this, passage, bytes] { enter_downlink(passage, bytes); });
  else enter_downlink(passage, bytes);
}

void SimulatedLink::enter_downlink(Capacity::Passage passage, std::uint64_t bytes) {
  passage = to_.downlink.pass(passage, bytes);
  if (passage.last > scheduler_.now()) scheduler_.at(passage.last, [this] { deliver_first(); });
  else deliver_first();
}

void SimulatedLink::deliver_first() {
  Chunk chunk = std::move(in_flight_.front());
  in_flight_.pop_front();
  to_.traffic.bytes_received += frame_bytes(chunk);
  if (Status status = receiver_.deliver(std::move(chunk)); !status.ok()) on_fault_(status.error());
}

}  // namespace gossamer::gossip
