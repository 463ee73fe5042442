#include "gossip/mixing/lockstep_mixer.hpp"

#include "gossip/mixing/adversary.hpp"

namespace gossamer::gossip {

void LockstepMixer::send(const topology::MixingMatrix& w, Round t, Channel channel,
                         std::span<const float> values, LeaseSource& owner) {
  const std::span<const int> to = context_.view.out_neighbours(w, t);
  if (context_.adversary)
    context_.adversary->send(context_.messenger, to, t, channel, values, owner);
  else context_.messenger.send(to, t, channel, values, owner);
}

task<std::vector<NeighbourRow>> LockstepMixer::share(SharedRow row) {
  send(*context_.process.schedule.at(row.t), row.t, row.channel, row.values, row.owner);
  std::vector<NeighbourRow> rows = co_await gather(row.t, row.channel, row.values.size());
  co_return rows;
}

task<std::vector<NeighbourRow>> LockstepMixer::gather(Round t, Channel channel,
                                                      std::size_t length) {
  const auto matrix = context_.process.schedule.at(t);
  PeerView& view = context_.view;
  std::vector<NeighbourRow> rows;
  for (const topology::Neighbour& neighbour : matrix->in_neighbours(view.peer())) {
    const std::shared_ptr<BufferedRow> buffer = this->buffer(neighbour.peer, channel, length);
    // A neighbour that is lost during the wait for another one may be restored for a later round.
    const Round present_since = view.present_since(neighbour.peer);
    bool whole = view.is_present(neighbour.peer, t);
    if (whole)
      whole = co_await context_.messenger.receive_whole(neighbour.peer, t, channel,
                                                        buffer->values(), Combine::replace);
    buffer->round = t;
    if (whole) rows.push_back({neighbour.peer, t, present_since, buffer->values(), buffer});
    else view.record({t, neighbour.peer, channel, true});
  }
  co_return rows;
}

Status LockstepMixer::on_control_message(const ChunkHeader& header) {
  return protocol_error(header, "a control message of another policy");
}

std::optional<Round> LockstepMixer::largest_lead() const {
  const std::optional<Round> period = this->period();
  return period ? std::optional(*period + 1) : std::nullopt;
}

std::shared_ptr<BufferedRow> LockstepMixer::buffer(int peer, Channel channel, std::size_t length) {
  auto& buffer = buffers_[{peer, channel}];
  if (!buffer)
    buffer = std::make_shared<BufferedRow>(context_.process.device(), context_.gpu(), length);
  return buffer;
}

}  // namespace gossamer::gossip
