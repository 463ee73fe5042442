#include "gossip/exchange/exchange.hpp"

#include <fmt/format.h>

#include "gossip/process/protocol_error.hpp"

namespace gossamer::gossip {

Exchange::Exchange(Scheduler& scheduler, Compute& compute, const topology::MixingSchedule& schedule,
                   ExchangeOptions options, const std::vector<int>& hosted, OnFault on_fault)
    : options_(std::move(options)),
      hosted_(hosted.begin(), hosted.end()),
      links_(hosted_),
      faults_(hosted_, std::move(on_fault)),
      validator_(options_, compute, hosted_, faults_),
      zeros_(compute.device()),
      process_{scheduler, compute, schedule, options_, links_, faults_, validator_, zeros_} {
  if (options_.attack != nullptr && options_.attack->make)
    adversary_ = std::make_unique<Adversary>(process_, *options_.attack, hosted_);
  for (const int peer : hosted_) {
    endpoints_.resize(static_cast<std::size_t>(peer) + 1);
    endpoints_.back() = std::make_unique<Endpoint>(process_, peer, adversary_.get());
  }
}

Exchange::~Exchange() {
  // An unread chunk may lie in the memory of another endpoint.
  for (const auto& endpoint : endpoints_)
    if (endpoint) endpoint->messenger().discard_unread();
}

Endpoint* Exchange::find(int peer) const {
  const auto at = static_cast<std::size_t>(peer);
  return peer >= 0 && at < endpoints_.size() ? endpoints_[at].get() : nullptr;
}

Endpoint& Exchange::endpoint(int peer) {
  Endpoint* const found = find(peer);
  GOSSAMER_CHECK(found != nullptr, "an endpoint of a peer that is not hosted here");
  return *found;
}

void Exchange::on_tick(Time counted) {
  for (const auto& endpoint : endpoints_)
    if (endpoint) endpoint->on_tick(counted);
}

Status Exchange::deliver(Chunk chunk) {
  const ChunkHeader header = chunk.header;
  Endpoint* const receiver = find(header.to);
  if (receiver == nullptr) return protocol_error(header, "that peer does not live here");
  if (header.channel >= options_.channel_count())
    return protocol_error(header, fmt::format("there are {} channels", options_.channel_count()));
  // The round proposed for a restored link may lie beyond the last one.
  if (header.round >
      options_.rounds + (header.control == ControlMessage::none ? 0 : kLargestMargin + 1))
    return protocol_error(header, fmt::format("the run has {} rounds", options_.rounds));
  if (find(header.from) == nullptr && process_.device().host_accessible())
    GOSSAMER_TRY_STATUS(validator_.validate_incoming(header, chunk.values));
  return receiver->deliver(std::move(chunk));
}

}  // namespace gossamer::gossip
