#include "gossip/exchange/endpoint.hpp"

#include <fmt/format.h>

namespace gossamer::gossip {

Endpoint::Endpoint(const ProcessContext& process, int peer, Adversary* adversary)
    : process_(process),
      messenger_(process, peer),
      view_(peer, process.schedule),
      coded_(process, messenger_, view_),
      mixer_(make_mixer({process, messenger_, view_, coded_, adversary})),
      watch_(process, messenger_),
      largest_lead_(mixer_->largest_lead()),
      starting_rows_(messenger_, process.options) {}

Status Endpoint::deliver(Chunk chunk) {
  const ChunkHeader header = chunk.header;
  if (is_of_membership(header.control))
    return on_membership_message
               ? on_membership_message(header)
               : protocol_error(header, "a membership message in a run that tolerates no loss");
  if (header.control == ControlMessage::waiting)
    return watch_.on_waiting(header, starting_rows_.donor());
  if (header.channel == process_.options.requested_channel())
    return starting_rows_.deliver(std::move(chunk));
  if (!view_.is_present(header.from)) return {};  // sent before the loss
  if (header.channel == process_.options.given_channel())
    return starting_rows_.deliver(std::move(chunk));
  if (header.control != ControlMessage::none) return mixer_->on_control_message(header);
  // In an open run, sent for a round that the other end has proposed, and this one has not agreed
  // to: the rows for one that it accepts follow its acceptance.
  if (process_.schedule.participants().is_open() &&
      (view_.is_proposed(header.from) || header.round < view_.present_since(header.from)))
    return {};
  GOSSAMER_TRY_STATUS(check_lead(header));
  GOSSAMER_TRY_STATUS(mixer_->on_chunk(header));
  return messenger_.deliver(std::move(chunk));
}

/// Of a row that is mixed in each round.
Status Endpoint::check_lead(const ChunkHeader& header) const {
  if (!largest_lead_ || header.round <= round_ + *largest_lead_) return {};
  const std::vector<ChannelSpec>& channels = process_.options.channels;
  if (header.channel >= channels.size() || !channels[header.channel].mixed ||
      !on_membership_message)
    return {};
  const Round base = std::max(
      {round_, view_.present_since(header.from), catch_ups_.resumes_by(header.round, round_)});
  if (header.round <= base + *largest_lead_ || !exchanges_rows_both_ways(header.from)) return {};
  return protocol_error(header, fmt::format("this peer is in round {}, and a neighbour is at most "
                                            "{} rounds ahead",
                                            round_, *largest_lead_));
}

/// Whether `peer` waits for this peer's rows wherever this peer waits for its.
bool Endpoint::exchanges_rows_both_ways(int peer) const {
  for (int t = 0; t < process_.schedule.period(); ++t) {
    const auto w = process_.schedule.at(static_cast<Round>(t));
    const auto takes = [&w](int to, int from) {
      return std::ranges::any_of(w->in_neighbours(to),
                                 [from](const auto& j) { return j.peer == from; });
    };
    if (takes(this->peer(), peer) && !takes(peer, this->peer())) return false;
  }
  return true;
}

void Endpoint::skip_to_round(Round t) {
  if (t < process_.options.rounds) minimum_next_ = t;
}

void Endpoint::on_link_lost(int peer) {
  if (view_.remove(peer)) mixer_->on_link_lost(peer);
  messenger_.close(peer);
  messenger_.notify();
}

void Endpoint::on_link_restored(int peer, Round first) {
  GOSSAMER_CHECK(!view_.is_present(peer) && first >= earliest_next(),
                 "a peer is restored that is present, or in a round that has begun");
  view_.restore(peer, first);
  messenger_.reopen(peer);
  mixer_->on_link_restored(peer, first);
}

void Endpoint::begin_at(Round first) {
  mixer_->begin_at(first);
  round_ = first;
  minimum_next_ = 0;
}

Round Endpoint::next_round(Round t, Round last) {
  const Round own = std::min(mixer_->next_round(t), last);
  const Round next = std::max(own, std::min(earliest_next(), last));
  rounds_left_out_ += next - own;
  round_ = next;
  if (next > t + 1 || next == last) mixer_->on_rounds_skipped(t + 1, next);
  return next;
}

task<void> Endpoint::flush_sends() {
  while (mixer_->has_unsent_rows()) co_await messenger_.wait_event();
}

Status Endpoint::flush_checks() const {
  GOSSAMER_TRY_STATUS(process_.validator.flush_checks());
  return coded_.all_decoded();
}

}  // namespace gossamer::gossip
