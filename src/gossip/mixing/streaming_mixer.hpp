// Policy sync, streaming.
//
// A mix of round t waits for the row of round t of every in-neighbour that is present, and mixes
// its pieces as they arrive, without copying: memory is the row's back half and the chunks that the
// links have delivered, a window for each neighbour. No control messages are sent. Invariant: every
// row of round t is used in the mix of round t or not at all, so all peers mix with the same W_t,
// and a run has the same bits wherever its peers are. A peer is at most one round ahead of a
// neighbour.
//
// When a neighbour is lost, the mix under way continues without the values that have not arrived.
// Mixing by differences leaves its weight with this peer's own row, so a symmetric W stays
// symmetric and doubly stochastic without an agreement. What is left of a directed W keeps either
// its row sums or its column sums equal to 1. Rows with a conserved sum are mixed by columns, the
// others by rows: gradient tracking is then AB / push-pull (Xin and Khan 2018; Pu, Shi, Xu and
// Nedić 2021), with its limit.
#pragma once

#include "gossip/mixing/lockstep_mixer.hpp"
#include "gossip/mixing/mix_operation.hpp"

namespace gossamer::gossip {

class StreamingMixer final : public LockstepMixer {
 public:
  explicit StreamingMixer(const MixerContext& context)
      : LockstepMixer(context), operations_(context.messenger, context.process) {}

  task<void> begin(Round t, Channel channel, MixedRow& row) override;
  task<void> finish(Channel channel, MixedRow& row) override;
  void on_link_lost(int peer) override;
  void on_rounds_skipped(Round first, Round next) override {
    record_skipped(first, next, operations_);
  }
  double mix_seconds() const override { return operations_.seconds(); }

 private:
  bool conserves_sum(Channel channel) const;

  MixOperations operations_;
};

}  // namespace gossamer::gossip
