// The exchange: rows go to this round's out-neighbours in chunks and theirs come in, and where a
// piece of every neighbour's row is here, that piece of the new row is mixed. One Endpoint is one
// peer's side; the Exchange holds those of a process.
//
// `sync`: a round takes exactly its own rows of all neighbours. Pieces are mixed as they come and
// nothing is copied: memory is the row's back half and the chunks that links lend (a window per
// neighbour). `deadline`, `stale` and `async` take neighbours' rows whole, and wait for late ones a
// while, where they are too old, or never (gossip/exchange/buffered_mix.hpp): memory is up to four
// rows per neighbour, three that came and one that it still reads. With a codec (sync only) rows
// travel as its messages and are decoded whole: gossip/exchange/coding.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gossip/codec.hpp"
#include "gossip/compute.hpp"
#include "gossip/exchange/pace.hpp"
#include "gossip/links/link.hpp"
#include "gossip/row.hpp"
#include "gossip/task.hpp"
#include "gpu/device_rows.hpp"
#include "gpu/fault_word.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

enum class Policy { sync, deadline, stale, async };

/// Where what W_t planned was not what was used: peer `from`'s row in a mix of round `round` on
/// `channel` was that of `used_round`, or there was none (missing), but for its first `values`
/// values, which had come before it was lost.
struct Deviation {
  Round round = 0;
  int from = 0;
  Channel channel = 0;
  bool missing = false;
  Round used_round = 0;
  std::uint64_t values = 0;
};

/// Of whom a message was, and of which round.
struct MessageOrigin {
  int from = 0;
  Round round = 0;
};

/// A row that is a round's whole, of another peer: stays as it is while it is held.
struct BufferedRow;
struct NeighbourRow {
  int from = 0;
  Round round = 0;
  Round entered = 0;  ///< since which it had taken part when the row came; 0: from the start
  std::span<const float> values;  ///< device memory
  std::shared_ptr<const BufferedRow> held;
};

class Exchange;
class CodedChannel;

/// What a chunk's sender did wrong, in words that name it.
Error protocol_error(const ChunkHeader& head, const std::string& what);

/// The chunks of one channel from one peer that have come and are not consumed, in order.
class Inbox {
 public:
  /// Who is told that a chunk has come. One at a time; null: nobody, chunks wait (and their link
  /// with them).
  class Consumer {
   public:
    virtual ~Consumer() = default;
    virtual void arrived() = 0;
  };

  std::deque<Chunk> chunks;
  Consumer* consumer = nullptr;

  /// Checks that the chunk continues the stream; then keeps it.
  Status push(Chunk chunk);
  /// Nothing more comes, and what has come is let go.
  void close();
  bool closed() const { return closed_; }
  /// What has come makes no sense: it is let go, and so is what comes, until the inbox is closed.
  void refuse();
  /// Of one that was closed: messages come again, from the beginning of one on.
  void reopen();

 private:
  std::uint64_t next_offset_ = 0, total_ = 0;
  Round round_ = 0;
  bool begun_ = false, closed_ = false, refused_ = false;
};

/// Waits for the first message that anybody sends on a channel.
class AnyAwaiter;
/// Copies of values on their way out.
class OutgoingCopies;
/// A mix under way on one row. Sources in ascending peer order, whatever order they come in.
class MixOperation;
/// A row's mixes under the policies that take rows whole.
class BufferedMix;

/// One peer's side of the exchange. Thread: the scheduler's.
class Endpoint {
 public:
  Endpoint(Exchange& exchange, int peer);
  ~Endpoint();

  /// x ← x + Σ_j W_t[i][j] (x_j − x) on `row` (and where row i of W does not sum to 1, as
  /// push-sum's need not, x ← W_t[i][i] x + Σ_j W_t[i][j] x_j), in two halves so that training may
  /// run between them. Begin sends the row to those who hear it in round t; until finish has
  /// returned, the front is not to be written. `channel`: the row's number.
  task<void> begin_mix(Round t, Channel channel, MixedRow& row);
  /// Waits for the rest and swaps the halves: front is the new value, back the old one.
  task<void> finish_mix(Channel channel, MixedRow& row);

  /// Sends `values`, which lie in `lender`'s memory, to those who hear this peer in its round, and
  /// takes theirs whole: Node::share.
  task<std::vector<NeighbourRow>> share(Round t, Channel channel, std::span<const float> values,
                                        LeasedRow& lender);
  /// After the last round, and before any goodbye: waits until rows that a busy link was to get
  /// later are on it, or it is lost.
  task<void> send_rest();
  /// Tells those whose rows this peer hears that its rounds are done: what they share is for it no
  /// more.
  void end_sharing(Round last, Channel channel);
  /// Whether what this peer shares in round t is for `peer` too: it is there, was so in the round
  /// before (with the first row that it hears of a link that is back it only learns where we are),
  /// and has not done its last round.
  bool takes(int peer, Round t) const;
  /// The round from which on `peer`, which was lost, takes part again; 0 where it was never lost.
  Round entered(int peer) const;

  /// Sends `values`, which lie in `lender`'s memory, as one message to each of `to` (ascending); by
  /// turns, a chunk to each. Returns at once; zero-copy.
  void send(std::span<const int> to, Round t, Channel channel, std::span<const float> values,
            LeasedRow& lender);
  /// The same, of a copy: `values` may change at once. Copies are kept for the next ones.
  void send_copy(int to, Round t, Channel channel, std::span<const float> values);
  /// Waits for the next message of `from` on `channel`, which must be of round t and of into's
  /// length. Where `from` is lost, the run ends.
  task<void> receive(int from, Round t, Channel channel, std::span<float> into, Combine combine);
  /// Takes the message on `channel`, of any peer and round, whose first chunk came first; waits
  /// where there is none. In virtual time the order is always the same, over TCP it is that of
  /// arrival. `into` has at least one value.
  task<MessageOrigin> receive_any(Channel channel, std::span<float> into, Combine combine);
  /// Of whom that message is, if there is one.
  std::optional<MessageOrigin> waiting(Channel channel) const;
  /// co_await endpoint.change(): until a chunk has come, or somebody has touched it, since the last
  /// change(); so nothing is missed between looking at what has come and waiting here. May resume
  /// for nothing. One waiter.
  auto wait_event() {
    struct Awaiter {
      Endpoint& endpoint;
      bool await_ready() const { return endpoint.event_pending_; }
      void await_suspend(std::coroutine_handle<> waiter) {
        GOSSAMER_CHECK(!endpoint.watcher_, "two wait for a change at one endpoint");
        endpoint.watcher_ = waiter;
      }
      void await_resume() const { endpoint.event_pending_ = false; }
    };
    return Awaiter{*this};
  }
  /// Something that change() waits for has happened.
  void notify();
  /// Waits for the next message of `from` on `channel`, as receive(); false where `from` is lost.
  task<bool> receive_whole(int from, Round t, Channel channel, std::span<float> into,
                           Combine combine);

  /// Sends the codec's message of `values` to those who hear this peer in round t, and puts what it
  /// decodes to into, or adds it to, `own`. Returns when `values` may change.
  task<void> send_coded(Round t, Channel channel, std::span<const float> values,
                        std::span<float> own, Combine combine);
  /// Waits for the message of `from` in round t, and puts what it decodes to into, or adds it to,
  /// `into`. One at a time on a channel. A message that cannot be read ends the run, perhaps some
  /// rounds later: no round waits for the device to tell. False where `from` is lost.
  task<bool> receive_coded(int from, Round t, Channel channel, std::span<float> into,
                           Combine combine);
  /// Waits for the device, and says whether every message that came could be read, and every row
  /// that it looked at be mixed.
  Status flush_checks() const;

  Status deliver(Chunk chunk);

  /// The link to and from `peer` is gone: the mix under way goes on without what has not come of
  /// its row, and those that come without it; its weight falls to this peer. Only of an algorithm
  /// that mixes and does nothing else.
  void lose(int peer);
  /// `peer`, which was lost, takes part again in the rounds from `first` on, none of which has
  /// begun.
  void enter(int peer, Round first);
  /// Who takes the notes of membership; nobody: they are refused.
  std::function<Status(const ChunkHeader&)> on_news;
  /// Whether `peer` is there, in this round or in one to come.
  bool present(int peer) const { return !lost_.contains(peer); }
  bool present(int peer, Round t) const;
  /// The round that this peer is in.
  Round round() const { return round_; }
  /// Where rows come for a peer that joins: messages of round 0. Only those of `giver` are kept, of
  /// anybody else's nothing.
  Channel state_channel() const;
  void expect_state_from(std::optional<int> donor);

  /// The round that comes after round t: the next one, but under `deadline` for a peer that the
  /// others have left behind, which then leaves out those that it would come too late for, and
  /// tells its neighbours. At most `last`, which is no round any more: nobody need wait for this
  /// peer.
  Round next_round(Round t, Round last);

  /// Round `first` is this peer's first: of a run that goes on, or of one that it joins. Before any
  /// other.
  void begin_at(Round first) {
    pace_.begin_at(first);
    round_ = first;
  }
  /// The round that comes next is `t` at least: those before are left out. Of a peer whom nobody
  /// hears in them.
  void leap_to(Round t) { leap_ = t; }
  /// The first round that may come after this one.
  Round earliest_next() const { return std::max(round_ + 1, leap_); }

  int peer() const { return peer_; }
  /// Time spent in mixing arithmetic so far.
  double mix_seconds() const { return mix_seconds_; }
  /// Of the frames that have come and wait for somebody to take them.
  std::uint64_t waiting_bytes() const;
  /// Whether rows whose sum is to stay (ExchangeOptions::keeps_sum) are mixed so: it makes no sense
  /// where what flows off does not come back.
  void keep_sums(bool keep) { keeps_sums_ = keep; }
  /// Takes what deviated from W since the last call.
  std::vector<Deviation> take_deviations();
  /// Lets go of all that came and was not taken, and of its leases.
  void drop_arrivals() { inboxes_.clear(); }

 private:
  friend class MixOperation;
  friend class BufferedMix;
  friend class AnyAwaiter;

  /// Whom this peer hears in round t, and who hears it, of those who are there. Valid until the
  /// next call.
  std::span<const topology::Neighbour> in_neighbours(const topology::MixingMatrix& w, Round t);
  std::span<const int> out_neighbours(const topology::MixingMatrix& w, Round t);
  void record_absent(Round t, Channel channel);
  Status keep(Chunk chunk);
  void refuse(const ChunkHeader& head, const std::string& what);
  const Chunk* first_chunk(Channel channel) const;
  double own_weight(const topology::MixingMatrix& w, Round t) const;
  bool is_mirrored(const topology::MixingMatrix& w) const;

  Inbox& inbox(int from, Channel channel) { return inboxes_[{from, channel}]; }
  MixOperation& operation(Channel channel);
  BufferedMix& staged_mix(Channel channel, std::size_t length);
  void begin_sync(Round t, Channel channel, MixedRow& row);
  task<void> finish_staged(Channel channel, MixedRow& row);
  task<std::vector<NeighbourRow>> share_in_step(Round t, Channel channel,
                                                std::span<const float> values, LeasedRow& lender);
  Pace::Others others() const;
  bool mixes_coded() const;
  /// Whether every message could be read, as far as the device has told by now.
  Status coded_rows_read() const;
  CodedChannel& coded(Channel channel, std::size_t length);
  task<void> begin_coded_mix(Round t, Channel channel, MixedRow& row);
  task<void> finish_coded_mix(Channel channel, MixedRow& row);

  Exchange& exchange_;
  int peer_;
  std::map<std::pair<int, Channel>, Inbox> inboxes_;
  std::map<Channel, std::unique_ptr<MixOperation>> operations_;
  std::map<Channel, std::unique_ptr<BufferedMix>> staged_;
  std::map<std::pair<int, Channel>, std::shared_ptr<BufferedRow>>
      shared_;  ///< the last of each neighbour, under `sync`
  Pace pace_;
  std::map<Channel, std::unique_ptr<CodedChannel>> coded_;
  std::map<Channel, AnyAwaiter*> waiting_for_any_;
  std::coroutine_handle<> watcher_;  ///< waits in change()
  bool event_pending_ = false;       ///< since the last change()
  std::uint64_t arrivals_ = 0;
  std::unique_ptr<OutgoingCopies> copies_;  ///< made when first needed
  std::set<int> lost_;
  std::map<int, Round> entered_;  ///< of those who were lost and are back: the first round that
                                  ///< they take part in again
  std::optional<int> donor_;
  Round leap_ = 0;
  std::vector<topology::Neighbour> heard_here_;
  std::vector<int> hearing_here_;
  Round round_ = 0;
  bool keeps_sums_ = true;
  std::vector<Deviation> deviations_;
  double mix_seconds_ = 0;
};

struct ExchangeOptions {
  Policy policy = Policy::sync;
  Round staleness = 4;  ///< of `stale`: rounds that a peer may be ahead of a neighbour
  double slack =
      0.25;  ///< of `deadline`: for how much of a round a mix waits longer than rows usually take
  std::size_t chunk_values = 1 << 18;         ///< values a chunk carries at most: 1 MiB
  std::vector<std::size_t> row_lengths = {};  ///< by channel: values of a row that goes over it
  Channel channels =
      1;  ///< rows that may be mixed or sent; one more is for rows handed over, others are refused
  std::function<int(int peer)> gpu_of = [](int) {
    return 0;
  };  ///< of the device, where a hosted peer's rows lie
  const Codec* codec = nullptr;  ///< what mixing and coded rows go through; null: rows are mixed as
                                 ///< they are. Sync only
  std::uint64_t seed = 0;        ///< of the run: keys what algorithms draw
  Round rounds = Round(1) << 40;  ///< of the run: rows of later ones are refused, and so is what
                                  ///< notes say of far later ones
  float largest_value = 1e18F;    ///< in magnitude, of what peers tell each other; finite
  std::vector<bool> keeps_sum =
      {};  ///< by channel: where somebody is absent, what is left of a directed W keeps the sum of
           ///< such rows, else rows that agree as they are; a symmetric one keeps both. Sync only
};

/// The endpoints of one process. Thread: the scheduler's.
class Exchange final : public Receiver {
 public:
  using OnFault = std::function<void(Error)>;

  /// `on_fault` is told, once, what makes going on impossible; the operations concerned then never
  /// finish.
  Exchange(Scheduler& scheduler, Compute& compute, const topology::MixingSchedule& schedule,
           ExchangeOptions options, std::vector<int> hosted, OnFault on_fault);
  ~Exchange() override;

  /// Chunks from → to go over `link`. Every pair that an algorithm uses is connected before its
  /// first round,
  void connect(int from, int to, Link& link) { links_[{from, to}] = &link; }
  /// or, where both ends are hosted, when it is first used: on random graphs anybody may meet
  /// anybody, and few pairs do.
  void connect_hosted(std::function<Link&(int from, int to)> make) { make_link_ = std::move(make); }
  /// The endpoint of hosted peer `peer`.
  Endpoint& endpoint(int peer);

  Status deliver(Chunk chunk) override;

  Scheduler& scheduler() { return scheduler_; }
  Compute& compute() { return compute_; }
  const topology::MixingSchedule& schedule() const { return schedule_; }
  const ExchangeOptions& options() const { return options_; }
  Link& link(int from, int to);
  void fault(Error error);
  /// Who loses the link from a peer elsewhere of which it turns out, after deliver() had taken it,
  /// that what it sent breaks the protocol; to be done later, from the scheduler's loop. Nobody, or
  /// a peer of this process: that is a fault.
  std::function<void(int here, int there, const Error& why)> on_protocol_violation;
  void breach(const ChunkHeader& head, Error why);

  // ---- what may be mixed (gossip/exchange/validation.cpp). Host memory; `values` are those of a
  // chunk, or a whole message
  /// An error (lost_peer) names the sender of what is not finite or beyond the bound.
  Status validate_incoming(const ChunkHeader& head, std::span<const float> values) const;
  /// The same of what a hosted peer is about to send: the error is `diverged`.
  Status validate_outgoing_chunk(const ChunkHeader& head, std::span<const float> values) const;
  /// Whether a whole message may be sent to `to`; else that is the fault that ends this process's
  /// run. A device whose memory the host cannot read looks at it itself, where it is for a peer of
  /// this process: some rounds may pass until that ends the run.
  bool validate_outgoing(int peer, Round t, Channel channel, std::span<const float> message,
                         std::span<const int> to);
  /// The same of a row of which a message is to be made: that may leave out what is wrong with it.
  bool validate_before_coding(int peer, Round t, Channel channel, std::span<const float> row,
                              std::span<const int> to);
  /// What the device has told by now of the rows that it looked at.
  Status checks_passed() const;
  /// As many zeros as x has values, on x's GPU, for all endpoints; rows are of one
  /// length.
  std::span<const float> zeros(std::span<const float> x);

 private:
  bool is_coded(Channel channel) const;
  std::optional<std::string> objection(const ChunkHeader& head,
                                       std::span<const float> values) const;
  bool enqueue_check(int peer, Round t, Channel channel, std::span<const float> row,
                     std::span<const int> to);

  Scheduler& scheduler_;
  Compute& compute_;
  const topology::MixingSchedule& schedule_;
  ExchangeOptions options_;
  OnFault on_fault_;
  bool faulted_ = false;
  std::optional<gpu::FaultWord> wrong_row_;  ///< told by the device; its tags are look()'s
  std::map<int, std::unique_ptr<Endpoint>> endpoints_;
  std::map<std::pair<int, int>, Link*> links_;
  std::function<Link&(int from, int to)> make_link_;
  gpu::DeviceRows<float> zeros_;  // a row for each GPU of the device
};

}  // namespace gossamer::gossip
