// Policies stale and async: a mix takes the newest row that has arrived from each in-neighbour.
//
// `async` waits for no row. `stale(s)` waits for the neighbours that this round would leave more
// than s rounds behind, by their newest rows: a peer starts mixing in round t only if it has a row
// of round t + 1 − s, or a later one, of every present in-neighbour. A row goes to each
// out-neighbour in every round; while a link still reads an earlier row it is skipped, and sends
// the newest one when it is free. Control message: `finished`, after which rows are no more shared
// with its sender; there are no others. Invariant: W's row i sums to 1 with any subset of its
// neighbours, because rows are mixed by differences; W's symmetry, and so the mean, is not kept.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "gossip/mixing/buffered_mix.hpp"

namespace gossamer::gossip {

class FreshestMix final : public BufferedMix {
 public:
  /// `staleness`: s of policy stale; none: policy async.
  FreshestMix(const MixerContext& context, Channel channel, std::size_t length,
              std::optional<Round> staleness)
      : BufferedMix(context, channel, length), staleness_(staleness) {}

  void expect(int from) override { edge(from); }
  Status on_control_message(const ChunkHeader& header) override;
  void on_link_restored(int peer, Round first) override;
  void skip_to(Round) override {}
  /// Sends the neighbours `finished`.
  void announce_last(Round rounds);
  bool has_left(int peer) const;
  bool has_unsent_rows() const;

 private:
  struct Edge {
    bool has_left = false;
    bool unsent = false;  ///< the newest row is to be sent once the link is free
  };

  Edge& edge(int peer);
  bool is_decided() override;
  void send(int to) override;
  bool is_recent(int peer) const;
  void on_whole_row(int) override { decided_.update(); }
  bool is_waiting_for(int from) const override;
  void on_link_free(int to) override;
  std::shared_ptr<const BufferedRow> take_row(int peer) override;
  void forget(int peer) override { edges_.at(peer).unsent = false; }

  std::optional<Round> staleness_;
  std::map<int, Edge> edges_;
};

class FreshestMixer final : public BufferedMixer {
 public:
  FreshestMixer(const MixerContext& context, std::optional<Round> staleness)
      : BufferedMixer(context), staleness_(staleness) {}

  void announce_last_share(Round rounds, Channel channel) override;
  bool has_left(int peer) const override;
  /// Under `stale` it has a row of this peer that is not older than the staleness.
  std::optional<Round> largest_lead() const override;
  bool uses_earlier_rows() const override { return true; }
  bool has_unsent_rows() const override;

 private:
  std::unique_ptr<BufferedMix> make_mix(Channel channel, std::size_t length) override;
  /// Without a common round, receivers recognise a row by the round since which it has not changed.
  Round round_of(const SharedRow& row) const override { return staleness_ ? row.t : row.since; }

  std::optional<Round> staleness_;
  std::map<Channel, FreshestMix*> mixes_;
};

}  // namespace gossamer::gossip
