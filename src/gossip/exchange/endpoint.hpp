// One peer's side of the exchange: its messenger, its view of the neighbours and its mixer, and the
// round that it is in.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/exchange/catch_up.hpp"
#include "gossip/exchange/row_watch.hpp"
#include "gossip/exchange/starting_rows.hpp"
#include "gossip/messaging/coded_messenger.hpp"
#include "gossip/messaging/messenger.hpp"
#include "gossip/mixing/mixer.hpp"
#include "gossip/peer_view.hpp"
#include "gossip/process/process_context.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class Endpoint {
 public:
  /// The services outlive the endpoint. `adversary`: MixerContext::adversary.
  Endpoint(const ProcessContext& process, int peer, Adversary* adversary);

  int peer() const { return view_.peer(); }
  Messenger& messenger() { return messenger_; }
  CodedMessenger& coded() { return coded_; }
  PeerView& view() { return view_; }
  Mixer& mixer() { return *mixer_; }
  CatchUpPlan& catch_ups() { return catch_ups_; }
  StartingRows& starting_rows() { return starting_rows_; }

  // ---- events
  /// A chunk for this peer has arrived. An error names the protocol violation.
  Status deliver(Chunk chunk);
  /// The link to and from `peer` is lost: the mix under way continues without the values that have
  /// not arrived, later mixes without its row; its weight falls to this peer. Only of an algorithm
  /// that only mixes.
  void on_link_lost(int peer);
  /// `peer`, which was lost, takes part again in the rounds from `first` on, none of which has
  /// begun.
  void on_link_restored(int peer, Round first);
  /// RowWatch::on_tick().
  void on_tick(Time counted) { watch_.on_tick(counted, round_, starting_rows_.donor()); }
  /// The donor that owes this joining peer rows has begun round t, and gives them in a later one.
  void on_donor_begins(int donor, Round t) { watch_.on_donor_begins(donor, t); }
  /// Receives the membership messages; without a receiver they are protocol violations.
  std::function<Status(const ChunkHeader&)> on_membership_message;

  // ---- rounds
  /// `first` is this peer's first round, of a resumed run, of a run that it joins, or after rounds
  /// in which it took no part.
  void begin_at(Round first);
  /// Ends round t, and returns the round that follows: t + 1, unless the policy, skip_to_round() or
  /// a catch-up skips rounds. At most `last`, the number of rounds, which is no round itself: the
  /// neighbours need not wait for this peer then.
  Round next_round(Round t, Round last);
  /// The next round is `t` at least, if the run has such a round: the end of a run is reached by
  /// rounds that were done. Only of a peer without present neighbours until then.
  void skip_to_round(Round t);
  /// Rounds that were left out because of skip_to_round() and of catch-ups.
  Round rounds_left_out() const { return rounds_left_out_; }
  /// The first round that may follow this one.
  Round earliest_next() const { return catch_ups_.next(std::max(round_ + 1, minimum_next_)); }
  /// The round that this peer is in.
  Round round() const { return round_; }

  // ---- calls of the engine
  /// After the last round: waits until the rows that were deferred for busy links are sent, or the
  /// links lost.
  task<void> flush_sends();
  /// Waits for the device, and returns whether all coded messages could be decoded and all rows
  /// that it checked were valid.
  Status flush_checks() const;
  /// The deviations from W since the last call.
  std::vector<Deviation> take_deviations() { return view_.take_deviations(); }
  /// Time spent in mixing arithmetic so far, in seconds of the scheduler's clock.
  double mix_seconds() const { return mixer_->mix_seconds() + coded_.seconds(); }

 private:
  Status check_lead(const ChunkHeader& header) const;
  bool exchanges_rows_both_ways(int peer) const;

  const ProcessContext& process_;
  Messenger messenger_;
  PeerView view_;
  CodedMessenger coded_;
  std::unique_ptr<Mixer> mixer_;
  RowWatch watch_;
  std::optional<Round> largest_lead_;  ///< Mixer::largest_lead()
  CatchUpPlan catch_ups_;
  StartingRows starting_rows_;
  Round round_ = 0;
  Round minimum_next_ = 0;
  Round rounds_left_out_ = 0;
};

}  // namespace gossamer::gossip
