// Policy sync with a rule other than the mean.
//
// A mix of round t waits for the row of round t of every in-neighbour that is present, one after
// the other in ascending order, and the rule is applied to the whole rows: a distance between rows
// is known only when all of their values are here. Rows are received in finish(); before, a link
// carries what its window allows. No control messages are sent, and the messages are those of
// StreamingMixer. A neighbour that is lost before its whole row has arrived is left out, and its
// weight stays with the peer's own row.
//
// Memory: a row for each in-neighbour and channel.
#pragma once

#include <map>

#include "gossip/mixing/lockstep_mixer.hpp"
#include "gossip/mixing/whole_row_mix.hpp"

namespace gossamer::gossip {

class GatheringMixer final : public LockstepMixer {
 public:
  explicit GatheringMixer(const MixerContext& context)
      : LockstepMixer(context), whole_rows_(context.messenger, context.process) {}

  task<void> begin(Round t, Channel channel, MixedRow& row) override;
  task<void> finish(Channel channel, MixedRow& row) override;
  void on_rounds_skipped(Round first, Round next) override { record_skipped(first, next, mixes_); }
  double mix_seconds() const override { return whole_rows_.seconds(); }

 private:
  /// A mix of one row.
  struct Mix {
    bool active = false;
    Round round = 0;
  };

  /// The gathered rows, with their weights in W_t.
  WholeRows weighted(Round t, std::vector<NeighbourRow> rows) const;

  WholeRowMix whole_rows_;
  std::map<Channel, Mix> mixes_;
};

}  // namespace gossamer::gossip
