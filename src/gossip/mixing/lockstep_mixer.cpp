#include "gossip/mixing/lockstep_mixer.hpp"

namespace gossamer::gossip {

task<std::vector<NeighbourRow>> LockstepMixer::share(SharedRow row) {
  const auto matrix = context_.process.schedule.at(row.t);
  PeerView& view = context_.view;
  context_.messenger.send(view.out_neighbours(*matrix, row.t), row.t, row.channel, row.values,
                          row.owner);
  std::vector<NeighbourRow> rows;
  for (const topology::Neighbour& neighbour : matrix->in_neighbours(view.peer())) {
    const std::shared_ptr<BufferedRow> buffer =
        this->buffer(neighbour.peer, row.channel, row.values.size());
    // A neighbour that is lost during the wait for another one may be restored for a later round.
    const Round member_since = view.member_since(neighbour.peer);
    bool whole = view.is_present(neighbour.peer, row.t);
    if (whole)
      whole = co_await context_.messenger.receive_whole(neighbour.peer, row.t, row.channel,
                                                        buffer->values(), Combine::replace);
    buffer->round = row.t;
    if (whole) rows.push_back({neighbour.peer, row.t, member_since, buffer->values(), buffer});
    else view.record({row.t, neighbour.peer, row.channel, true});
  }
  co_return rows;
}

Status LockstepMixer::on_control_message(const ChunkHeader& header) {
  return protocol_error(header, "a control message of another policy");
}

std::shared_ptr<BufferedRow> LockstepMixer::buffer(int peer, Channel channel, std::size_t length) {
  auto& buffer = buffers_[{peer, channel}];
  if (!buffer)
    buffer = std::make_shared<BufferedRow>(context_.process.device(), context_.gpu(), length);
  return buffer;
}

}  // namespace gossamer::gossip
