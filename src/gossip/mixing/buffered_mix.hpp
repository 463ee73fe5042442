// Buffered mixes: what the policies deadline, stale and async have in common. Neighbours' rows are
// assembled whole as they arrive, whether or not a mix wants them, so no link ever waits for a slow
// reader; and a row goes out as a copy, so a slow link never delays this peer's next mix. The
// policies differ in the rows that a mix waits for and takes.
//
// Memory for each row: three rows per neighbour that arrived (RowAssembler), and as many copies on
// their way out as neighbours read different ones, one more at most than there are neighbours.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "gossip/mixing/mixer.hpp"
#include "gossip/mixing/pending_decision.hpp"
#include "gossip/mixing/row_assembler.hpp"
#include "gossip/mixing/whole_row_mix.hpp"

namespace gossamer::gossip {

/// A copy of a row on its way to one neighbour. It is leased until the neighbour has the whole row.
class OutgoingRow final : public LeaseSource {
 public:
  void begin(LeasedRow& copy) { copy_ = copy.lease(); }
  bool busy() const { return chunks_ > 0; }
  Lease lease() override {
    ++chunks_;
    return Lease(*this);
  }
  void on_lease_end() override {
    if (--chunks_ > 0) return;
    copy_.end();
    on_free();
  }
  std::function<void()> on_free = [] {};

 private:
  Lease copy_;
  int chunks_ = 0;
};

/// The mixes of one row. All rows of a channel have one length. Thread: the scheduler's.
class BufferedMix : public RowAssembler::Listener {
 public:
  BufferedMix(const MixerContext& context, Channel channel, std::size_t length);
  BufferedMix(const BufferedMix&) = delete;
  BufferedMix& operator=(const BufferedMix&) = delete;

  /// Sends a copy of `row`, as the row of round `as`, to the out-neighbours of round t, and starts
  /// to wait for the rows of the in-neighbours.
  void begin(Round t, std::span<const float> row, Round as);
  /// co_await mix.decided(): until it is known which rows are mixed.
  auto decided() { return decided_.made(); }
  /// Ends the round's mix and returns its rows. Records the deviations from W.
  WholeRows take();

  /// A chunk from `from` is about to arrive, or the neighbour takes part in control messages.
  virtual void expect(int from) = 0;
  virtual Status on_control_message(const ChunkHeader& header) = 0;
  void on_link_lost(int peer);
  virtual void on_link_restored(int peer, Round first) = 0;
  /// This peer mixes in no round before `next`.
  virtual void skip_to(Round next) = 0;

 protected:
  // ---- the policy's part
  /// Whether the rows of this mix are known.
  virtual bool is_decided() = 0;
  /// A mix begins; its row is not sent yet.
  virtual void on_begin() {}
  /// Sends the newest copy to `to`, or not, as the policy has it.
  virtual void send(int to) = 0;
  /// The row is sent.
  virtual void on_sent() {}
  void on_whole_row(int from) override = 0;
  bool is_waiting_for(int from) const override = 0;
  /// The link to `to` has taken the whole row.
  virtual void on_link_free(int to) { (void)to; }
  /// The row of `peer` that the mix takes; null if it takes none.
  virtual std::shared_ptr<const BufferedRow> take_row(int peer) = 0;
  virtual void on_end() {}
  /// A neighbour with a link state here was lost.
  virtual void forget(int peer) = 0;
  /// The in-neighbours of the mix under way have changed.
  virtual void advance() {}

  // ---- for the policies
  /// Makes the buffers of a neighbour, unless it has some.
  void open(int peer);
  /// Whether this peer attacks `to` by silence in the mix under way.
  bool withholds(int to) const;
  /// Sends the newest copy to `to`; false if it is withheld, or the link still reads an earlier
  /// one.
  bool transmit(int to);
  void send_control(int to, ControlMessage message, Round t);
  /// Null until a whole row has arrived.
  std::shared_ptr<const BufferedRow> newest(int peer) const;

  MixerContext context_;
  Round round_ = 0;                                 ///< of the mix under way, or the last one
  bool active_ = false;                             ///< a mix is under way
  std::vector<topology::Neighbour> in_neighbours_;  ///< of round_; present ones only
  PendingDecision decided_;

 private:
  struct Neighbour {
    std::unique_ptr<RowAssembler> assembler;
    OutgoingRow outgoing;
  };

  Channel channel_;
  std::size_t length_;
  LeasedRow* copy_ = nullptr;  ///< the newest one that was made
  Lease copy_lease_;           ///< for rows that are still to be sent
  Round copy_round_ = 0;
  std::map<int, Neighbour> neighbours_;
  std::shared_ptr<const topology::MixingMatrix> matrix_;
};

/// The mixes of all rows.
class BufferedMixer : public Mixer {
 public:
  explicit BufferedMixer(const MixerContext& context)
      : Mixer(context), whole_rows_(context.messenger, context.process) {}

  task<void> begin(Round t, Channel channel, MixedRow& row) override;
  task<void> finish(Channel channel, MixedRow& row) override;
  task<std::vector<NeighbourRow>> share(SharedRow row) override;
  Status on_control_message(const ChunkHeader& header) override;
  Status on_chunk(const ChunkHeader& header) override;
  void on_link_lost(int peer) override;
  void on_link_restored(int peer, Round first) override;
  void on_rounds_skipped(Round first, Round next) override;
  double mix_seconds() const override { return whole_rows_.seconds(); }

 protected:
  virtual std::unique_ptr<BufferedMix> make_mix(Channel channel, std::size_t length) = 0;
  /// The round that a shared row is sent as one of.
  virtual Round round_of(const SharedRow& row) const { return row.t; }

 private:
  BufferedMix& mix(Channel channel, std::size_t length);
  bool takes_rows(Channel channel) const;
  std::size_t length_of(Channel channel) const;

  std::map<Channel, std::unique_ptr<BufferedMix>> mixes_;
  WholeRowMix whole_rows_;
};

}  // namespace gossamer::gossip
