#include "gossip/mixing/gathering_mixer.hpp"

namespace gossamer::gossip {

task<void> GatheringMixer::begin(Round t, Channel channel, MixedRow& row) {
  co_await row.back().writable();
  Mix& mix = mixes_[channel];
  GOSSAMER_CHECK(!mix.active, "a row is mixed twice at once");
  const auto matrix = context_.process.schedule.at(t);
  GOSSAMER_CHECK(matrix->row_surplus(context_.peer()) == 0,
                 "rows that a rule mixes are mixed by differences");
  mix.active = true;
  mix.round = t;
  send(*matrix, t, channel, row.values(), row.front());
}

task<void> GatheringMixer::finish(Channel channel, MixedRow& row) {
  Mix& mix = mixes_[channel];
  std::vector<NeighbourRow> gathered = co_await gather(mix.round, channel, row.values().size());
  WholeRows rows = weighted(mix.round, std::move(gathered));
  // Also without sources: as in StreamingMixer, the halves are swapped in every round.
  co_await whole_rows_.mix(channel, row, std::move(rows));
  mix.active = false;
}

WholeRows GatheringMixer::weighted(Round t, std::vector<NeighbourRow> rows) const {
  const auto matrix = context_.process.schedule.at(t);
  WholeRows result;
  result.round = t;
  auto next = rows.begin();
  for (const topology::Neighbour& neighbour : matrix->in_neighbours(context_.peer())) {
    if (next == rows.end()) break;
    if (next->from != neighbour.peer) continue;
    result.sources.push_back({next->values.data(), static_cast<float>(neighbour.weight)});
    result.from.push_back(next->from);
    result.held.push_back(std::move(next->held));
    ++next;
  }
  return result;
}

}  // namespace gossamer::gossip
