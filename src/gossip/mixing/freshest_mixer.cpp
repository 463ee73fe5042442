#include "gossip/mixing/freshest_mixer.hpp"

#include <algorithm>

namespace gossamer::gossip {

FreshestMix::Edge& FreshestMix::edge(int peer) {
  open(peer);
  return edges_[peer];
}

bool FreshestMix::is_decided() {
  if (!staleness_) return true;
  for (const topology::Neighbour& neighbour : in_neighbours_) {
    edge(neighbour.peer);
    if (!is_recent(neighbour.peer)) return false;
  }
  return true;
}

/// Whether the newest row of `peer` is not older than the staleness allows.
bool FreshestMix::is_recent(int peer) const {
  const auto row = newest(peer);
  const Round done_by_it = row ? row->round : 0;
  return round_ + 1 <= done_by_it + *staleness_;
}

bool FreshestMix::is_waiting_for(int from) const {
  return active_ && staleness_ && !is_recent(from) &&
         std::ranges::any_of(in_neighbours_, [from](const auto& j) { return j.peer == from; });
}

void FreshestMix::send(int to) {
  Edge& edge = this->edge(to);
  edge.unsent = !transmit(to) && !withholds(to);
}

void FreshestMix::on_link_free(int to) {
  if (!edges_.at(to).unsent) return;
  // The lease ended inside a link, which may be changing what its send() changes.
  context_.process.scheduler.after(Time(0), [this, to] {
    if (!edges_.at(to).unsent) return;
    send(to);
    if (!edges_.at(to).unsent) context_.messenger.notify();
  });
}

std::shared_ptr<const BufferedRow> FreshestMix::take_row(int peer) {
  edge(peer);
  return newest(peer);
}

Status FreshestMix::on_control_message(const ChunkHeader& header) {
  if (header.control != ControlMessage::finished)
    return protocol_error(header, "a control message of another policy");
  edge(header.from).has_left = true;
  return {};
}

void FreshestMix::on_link_restored(int peer, Round) { edge(peer).has_left = false; }

void FreshestMix::announce_last(Round rounds) {
  for (const auto& [peer, edge] : edges_)
    if (context_.view.is_present(peer)) send_control(peer, ControlMessage::finished, rounds);
}

bool FreshestMix::has_left(int peer) const {
  const auto found = edges_.find(peer);
  return found != edges_.end() && found->second.has_left;
}

bool FreshestMix::has_unsent_rows() const {
  return std::ranges::any_of(edges_, [](const auto& entry) { return entry.second.unsent; });
}

// ---- all rows

std::unique_ptr<BufferedMix> FreshestMixer::make_mix(Channel channel, std::size_t length) {
  auto mix = std::make_unique<FreshestMix>(context_, channel, length, staleness_);
  mixes_[channel] = mix.get();
  return mix;
}

void FreshestMixer::announce_last_share(Round rounds, Channel channel) {
  if (const auto found = mixes_.find(channel); found != mixes_.end())
    found->second->announce_last(rounds);
}

std::optional<Round> FreshestMixer::largest_lead() const {
  const std::optional<Round> period = this->period();
  return staleness_ && period ? std::optional(*period + *staleness_) : std::nullopt;
}

bool FreshestMixer::has_left(int peer) const {
  return std::ranges::any_of(mixes_,
                             [peer](const auto& entry) { return entry.second->has_left(peer); });
}

bool FreshestMixer::has_unsent_rows() const {
  return std::ranges::any_of(mixes_,
                             [](const auto& entry) { return entry.second->has_unsent_rows(); });
}

}  // namespace gossamer::gossip
