// Policy sync with a lossy codec.
//
// Rows travel as messages of the codec, and a mix of round t is
//   x_i + Σ_j W_t[i][j] (Q(x_j) − Q(x_i)),
// over the in-neighbours that are present, where Q(x) is what the message of x decodes to. The mix
// waits for the message of round t of each of them, one after the other in ascending order. No
// control messages are sent. Invariant: an edge adds at one end what it subtracts at the other,
// whatever Q does, so the mean of the rows is kept, and consensus is a fixed point.
//
// Memory: two rows for each channel, beside the codec's messages (CodedMessenger).
#pragma once

#include <map>

#include "gossip/mixing/lockstep_mixer.hpp"

namespace gossamer::gossip {

class CodedMixer final : public LockstepMixer {
 public:
  using LockstepMixer::LockstepMixer;

  task<void> begin(Round t, Channel channel, MixedRow& row) override;
  task<void> finish(Channel channel, MixedRow& row) override;
  void on_rounds_skipped(Round first, Round next) override { record_skipped(first, next, mixes_); }
  double mix_seconds() const override { return 0; }  // CodedMessenger::seconds()

 private:
  /// A mix of one row.
  struct Mix {
    bool active = false;
    Round round = 0;
    gpu::DeviceRows<float> decoded;  ///< Q(x_i), Q(x_j)
  };

  std::map<Channel, Mix> mixes_;
};

}  // namespace gossamer::gossip
