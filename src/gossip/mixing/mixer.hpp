// The interface of the policies: when a mix takes a neighbour's row, and which one.
//
//   policy      mixer                                  a mix takes
//   sync        StreamingMixer (CodedMixer with a      exactly this round's row of every neighbour
//               lossy codec, GatheringMixer with a
//               rule other than the mean)
//   deadline    DeadlineMixer                          this round's rows that arrive in time
//   stale(s)    FreshestMixer                          the newest rows, none older than s rounds
//   async       FreshestMixer                          the newest rows that have arrived
//
// A mixer is chosen once, by make_mixer(), and serves one peer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gossip/messaging/coded_messenger.hpp"
#include "gossip/messaging/messenger.hpp"
#include "gossip/mixing/neighbour_row.hpp"
#include "gossip/peer_view.hpp"
#include "gossip/process/process_context.hpp"
#include "gossip/process/protocol_error.hpp"
#include "gossip/row.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

class Adversary;

/// What a mixer works with. All of it outlives the mixer.
struct MixerContext {
  const ProcessContext& process;
  Messenger& messenger;
  PeerView& view;
  CodedMessenger& coded;
  Adversary* adversary = nullptr;  ///< null: all peers of the run are honest

  int peer() const { return view.peer(); }
  int gpu() const { return process.options.gpu_of(peer()); }
};

/// A row that a peer shares with its out-neighbours: it is received whole and is not mixed.
struct SharedRow {
  Round t = 0;      ///< the round under way
  Round since = 0;  ///< the round since which the row has these values
  Channel channel = 0;
  std::span<const float> values;
  LeaseSource& owner;  ///< of the values, which do not change until no lease is out
};

/// Thread: the scheduler's.
class Mixer {
 public:
  explicit Mixer(const MixerContext& context) : context_(context) {}
  virtual ~Mixer() = default;

  // ---- mixing one row, which is `channel`
  /// Starts x ← x + Σ_j W_t[i][j] (x_j − x) on `row`, or what the run's rule makes of x and the
  /// x_j; where row i of W does not sum to 1, as push-sum's need not, x ← W_t[i][i] x + Σ_j
  /// W_t[i][j] x_j, or, of a row_stochastic channel, the first formula with the row of W over its
  /// sum. Sends the row to the out-neighbours of round t. Until finish() has returned,
  /// the row's front is not to be written.
  virtual task<void> begin(Round t, Channel channel, MixedRow& row) = 0;
  /// Waits for the rows that the policy requires, and swaps the row's halves: the front is the new
  /// value, the back the old one.
  virtual task<void> finish(Channel channel, MixedRow& row) = 0;

  // ---- sharing one row
  /// Sends a row to the out-neighbours of its round and returns theirs, in ascending order, waiting
  /// as for a mix. A neighbour whose row is missing is left out.
  virtual task<std::vector<NeighbourRow>> share(SharedRow row) = 0;
  /// This peer has done all of its `rounds` rounds: its neighbours need share no more with it.
  virtual void announce_last_share(Round rounds, Channel channel) { (void)rounds, (void)channel; }
  /// Whether `peer` has announced its last share.
  virtual bool has_left(int peer) const {
    (void)peer;
    return false;
  }

  // ---- events
  /// A control message of a present neighbour. An error names the protocol violation.
  virtual Status on_control_message(const ChunkHeader& header) = 0;
  /// A chunk of a row is about to be delivered to the inbox. An error names the protocol violation.
  virtual Status on_chunk(const ChunkHeader& header) {
    (void)header;
    return {};
  }
  /// `peer` was present and is lost: the mix under way continues without the values that have not
  /// arrived, and later mixes without the peer. Called before its inboxes are closed.
  virtual void on_link_lost(int peer) { (void)peer; }
  /// `peer` is present again from round `first` on.
  virtual void on_link_restored(int peer, Round first) { (void)peer, (void)first; }

  // ---- rounds
  /// `first` is the first round of this peer.
  virtual void begin_at(Round first) { (void)first; }
  /// The round that this peer should start after round t: t + 1, unless the policy skips rounds.
  virtual Round next_round(Round t) { return t + 1; }
  /// This peer skips the rounds first … next−1, of which there may be none. Records the deviations.
  virtual void on_rounds_skipped(Round first, Round next) = 0;
  /// By how many rounds a neighbour with which this peer exchanges rows both ways may be ahead of
  /// this peer when its row arrives; none where the policy or the graph gives no bound.
  virtual std::optional<Round> largest_lead() const { return std::nullopt; }
  /// Whether a mix may take a row of an earlier round. Rows with which messages under way are
  /// accounted for then fit no saved state.
  virtual bool uses_earlier_rows() const { return false; }
  /// Whether a row is still to be sent once a busy link is free.
  virtual bool has_unsent_rows() const { return false; }

  /// Time spent in mixing arithmetic so far, in seconds of the scheduler's clock.
  virtual double mix_seconds() const = 0;

 protected:
  /// The rounds within which any two neighbours exchange rows; none where the graph is random.
  std::optional<Round> period() const;
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
};

/// The mixer of the options' policy, codec and rule.
std::unique_ptr<Mixer> make_mixer(const MixerContext& context);

}  // namespace gossamer::gossip
