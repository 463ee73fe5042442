// Rows that are shared and not mixed: each peer sends its own and is given those of the others
// whole, to make of them what it will. What waits for whom is the policy's, as it is where rows are
// mixed.
#include <algorithm>

#include "gossip/exchange/buffered_mix.hpp"
#include "gossip/exchange/exchange.hpp"

namespace gossamer::gossip {

task<std::vector<NeighbourRow>> Endpoint::share(Round since, Channel channel,
                                                std::span<const float> values, LeasedRow& lender) {
  if (exchange_.options().policy == Policy::sync) {
    std::vector<NeighbourRow> heard = co_await share_in_step(round_, channel, values, lender);
    co_return heard;
  }
  BufferedMix& staged = staged_mix(channel, values.size());
  staged.begin(round_, values, exchange_.options().policy == Policy::async ? since : round_);
  co_await staged.decided();
  BufferedMix::Rows rows = staged.take(deviations_);
  std::vector<NeighbourRow> heard;
  for (std::size_t k = 0; k < rows.held.size(); ++k)
    heard.push_back({rows.from[k], rows.held[k]->round, entered(rows.from[k]),
                     rows.held[k]->row.row(0), rows.held[k]});
  co_return heard;
}

task<std::vector<NeighbourRow>> Endpoint::share_in_step(Round t, Channel channel,
                                                        std::span<const float> values,
                                                        LeasedRow& lender) {
  const auto matrix = exchange_.schedule().at(t);
  send(out_neighbours(*matrix, t), t, channel, values, lender);
  std::vector<NeighbourRow> heard;
  for (const topology::Neighbour& neighbour : matrix->in_neighbours(peer_)) {
    auto& row = shared_[{neighbour.peer, channel}];
    if (!row)
      row = std::make_shared<BufferedRow>(exchange_.compute().device(),
                                          exchange_.options().gpu_of(peer_), values.size());
    // One that was lost while another was waited for may be back, for a later round.
    const Round entered = this->entered(neighbour.peer);
    bool whole = present(neighbour.peer, t);
    if (whole)
      whole = co_await receive_whole(neighbour.peer, t, channel, row->row.row(0), Combine::replace);
    row->round = t;
    if (whole) heard.push_back({neighbour.peer, t, entered, row->row.row(0), row});
    else deviations_.push_back({t, neighbour.peer, channel, true});
  }
  co_return heard;
}

void Endpoint::end_sharing(Round last, Channel channel) {
  if (const auto found = staged_.find(channel); found != staged_.end()) found->second->end(last);
}

bool Endpoint::takes(int peer, Round t) const {
  const auto entered = entered_.find(peer);
  if (!present(peer, t) || (entered != entered_.end() && entered->second == t)) return false;
  return std::ranges::none_of(staged_,
                              [peer](const auto& entry) { return entry.second->ended(peer); });
}

Round Endpoint::entered(int peer) const {
  const auto found = entered_.find(peer);
  return found == entered_.end() ? 0 : found->second;
}

}  // namespace gossamer::gossip
