// What the mixers of policy sync have in common: a mix or a share of round t takes exactly the row
// of round t of every in-neighbour that is present. No control messages are sent, and no round is
// skipped.
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
  explicit LockstepMixer(const MixerContext& context) : context_(context) {}

  task<std::vector<NeighbourRow>> share(SharedRow row) override;
  void announce_last_share(Round, Channel) override {}
  bool has_left(int) const override { return false; }
  Status on_control_message(const ChunkHeader& header) override;
  Status on_chunk(const ChunkHeader&) override { return {}; }
  void on_link_restored(int, Round) override {}
  void begin_at(Round) override {}
  Round next_round(Round t) override { return t + 1; }
  /// It has this peer's row of the last round in which the two exchanged rows, which they do once
  /// in a period at least.
  std::optional<Round> largest_lead() const override;
  bool uses_earlier_rows() const override { return false; }
  bool has_unsent_rows() const override { return false; }

 protected:
  /// Sends a row to the out-neighbours of round t, whose matrix is w; of a run with an attack,
  /// through the adversary. The values do not change until no lease on `owner` is out.
  void send(const topology::MixingMatrix& w, Round t, Channel channel,
            std::span<const float> values, LeaseSource& owner);
  /// Waits for the rows of round t of the in-neighbours that are present, and returns them whole,
  /// in ascending order. Records those that are missing. The rows stay as they are until the
  /// channel's next call.
  task<std::vector<NeighbourRow>> gather(Round t, Channel channel, std::size_t length);

  /// Records the rounds first … next−1 as skipped, on each channel that is a key of `mixes`.
  template <class Mixes>
  void record_skipped(Round first, Round next, const Mixes& mixes) {
    for (Round skipped = first; skipped < next; ++skipped) {
      const auto matrix = context_.process.schedule.at(skipped);
      for (const auto& [channel, mix] : mixes)
        context_.view.record_skipped(*matrix, skipped, channel);
    }
  }

  MixerContext context_;

 private:
  std::shared_ptr<BufferedRow> buffer(int peer, Channel channel, std::size_t length);

  std::map<std::pair<int, Channel>, std::shared_ptr<BufferedRow>> buffers_;
};

}  // namespace gossamer::gossip
