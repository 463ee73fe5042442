#include "gossip/exchange/endpoint.hpp"

namespace gossamer::gossip {

Endpoint::Endpoint(const ProcessContext& process, int peer)
    : process_(process),
      messenger_(process, peer),
      view_(peer, process.schedule),
      coded_(process, messenger_, view_),
      mixer_(make_mixer({process, messenger_, view_, coded_})) {}

Status Endpoint::deliver(Chunk chunk) {
  const ChunkHeader header = chunk.header;
  if (is_of_membership(header.control))
    return on_membership_message
               ? on_membership_message(header)
               : protocol_error(header, "a membership message in a run that tolerates no loss");
  if (header.channel == state_channel()) {
    if (header.from == donor_) return messenger_.deliver(std::move(chunk));
    return {};
  }
  if (!view_.is_present(header.from)) return {};  // sent before the loss
  if (header.control != ControlMessage::none) return mixer_->on_control_message(header);
  GOSSAMER_TRY_STATUS(mixer_->on_chunk(header));
  return messenger_.deliver(std::move(chunk));
}

void Endpoint::on_link_lost(int peer) {
  if (view_.remove(peer)) mixer_->on_link_lost(peer);
  messenger_.close(peer);
}

void Endpoint::on_link_restored(int peer, Round first) {
  GOSSAMER_CHECK(!view_.is_present(peer) && first >= earliest_next(),
                 "a peer is restored that is present, or in a round that has begun");
  view_.restore(peer, first);
  messenger_.reopen(peer);
  mixer_->on_link_restored(peer, first);
}

void Endpoint::expect_state_from(std::optional<int> donor) {
  if (donor_) messenger_.inbox(*donor_, state_channel()).close();
  donor_ = donor;
  if (donor_) messenger_.inbox(*donor_, state_channel()).reopen();
}

void Endpoint::begin_at(Round first) {
  mixer_->begin_at(first);
  round_ = first;
}

Round Endpoint::next_round(Round t, Round last) {
  const Round next = std::min(std::max(mixer_->next_round(t), minimum_next_), last);
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
