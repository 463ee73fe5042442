// What the mixers of policy sync have in common: a mix or a share of round t takes exactly the row
// of round t of every in-neighbour that is present. No control messages are sent. Only a peer
// without present neighbours skips rounds.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gossip/mixing/mixer.hpp"

namespace gossamer::gossip {

/// Memory: one row for each in-neighbour and channel on which rows are gathered.
class LockstepMixer : public Mixer {
 public:
  using Mixer::Mixer;

  task<std::vector<NeighbourRow>> share(SharedRow row) override;
  Status on_control_message(const ChunkHeader& header) override;
  /// A neighbour has this peer's row of the last round in which the two exchanged rows.
  std::optional<Round> largest_lead() const override;

 protected:
  /// Sends a row to the out-neighbours of round t, whose matrix is w; of a run with an attack,
  /// through the adversary. The values do not change until no lease on `owner` is out.
  void send(const topology::MixingMatrix& w, Round t, Channel channel,
            std::span<const float> values, LeaseSource& owner);
  /// Waits for the rows of round t of the in-neighbours that are present, and returns them whole,
  /// in ascending order. Records those that are missing. The rows stay as they are until the
  /// channel's next call.
  task<std::vector<NeighbourRow>> gather(Round t, Channel channel, std::size_t length);

 private:
  std::shared_ptr<BufferedRow> buffer(int peer, Channel channel, std::size_t length);

  std::map<std::pair<int, Channel>, std::shared_ptr<BufferedRow>> buffers_;
};

}  // namespace gossamer::gossip
