#include "gossip/mixing/streaming_mixer.hpp"

namespace gossamer::gossip {

task<void> StreamingMixer::begin(Round t, Channel channel, MixedRow& row) {
  const auto matrix = context_.process.schedule.at(t);
  send(*matrix, t, channel, row.values(), row.front());
  // After the send: the neighbours need this row, and with it comes the release of theirs.
  co_await row.back().writable();
  PeerView& view = context_.view;
  view.record_absent(t, channel);
  MixOperation::Stream stream{t, channel, row.values(), {}, row.values(), {}};
  stream.neighbours = view.in_neighbours(*matrix, t);
  stream.as_difference = context_.process.options.channels[channel].as_difference;
  const bool by_columns =
      conserves_sum(channel) && !view.is_complete(*matrix, t) && !view.is_mirrored(*matrix);
  const double surplus = matrix->row_surplus(view.peer());
  if (context_.process.options.channels[channel].row_stochastic) {
    stream.row_sum = 1 + surplus;  // the weights of lost neighbours fall to the peer's own row
  } else if (surplus != 0 || by_columns) {
    GOSSAMER_CHECK(!stream.as_difference,
                   "a row that is mixed with an own weight has no difference");
    // own · x + Σ_j W[i][j] x_j, as differences to zero: differences to x would subtract from a
    // peer with many neighbours what has to be added again.
    stream.base = context_.process.zeros.like(row.values());
    stream.own_weight = static_cast<float>(view.own_weight(*matrix, t));
  }
  // A peer without in-neighbours copies its row: while neighbours read the one half, it writes the
  // other. On a GPU it copies even if no neighbour reads: all peers then swap halves in the same
  // rounds, and graphs that were captured for these row addresses are reused.
  const bool alone =
      stream.neighbours.empty() && !stream.own_weight && view.out_neighbours(*matrix, t).empty();
  if (alone && context_.process.device().host_accessible()) co_return;
  operations_.of(channel).begin(stream, row.back().values());
}

task<void> StreamingMixer::finish(Channel channel, MixedRow& row) {
  MixOperation& mix = operations_.of(channel);
  if (!mix.begun()) co_return;
  co_await mix.finished();
  mix.end();
  row.swap();
}

void StreamingMixer::on_link_lost(int peer) {
  for (auto& [channel, mix] : operations_)
    if (const auto deviation = mix->drop_source(peer)) context_.view.record(*deviation);
  for (auto& [channel, mix] : operations_) mix->advance();
}

bool StreamingMixer::conserves_sum(Channel channel) const {
  return context_.view.conserves_sums() && context_.process.options.channels[channel].conserves_sum;
}

}  // namespace gossamer::gossip
