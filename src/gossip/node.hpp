// A peer, or a server of a baseline, as an algorithm sees it: rows, training, and exchange with
// others. All that algorithms need, and all they get.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossip/algorithm.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/row.hpp"

namespace gossamer::gossip {

/// The row that gradients are made in, where an algorithm's own rows have numbers from 0.
inline constexpr int kGradientRow = -1;

/// A peer's rows in device memory, made by the engine: front and back halves by row of
/// Algorithm::rows() (back empty where not mixed), each of RowSpec::length() values, and what the
/// trainer works in.
struct NodeMemory {
  std::vector<std::span<float>> front, back;
  std::span<float> gradient;  ///< d values where the algorithm trains
  std::vector<std::span<float>>
      state;                 ///< the rows of d values that the optimizer keeps, zero at the start
  std::size_t counters = 0;  ///< Algorithm::counters()
};

/// Where a peer's time went, in seconds of the scheduler's clock, since the start.
struct NodeTimes {
  double train_seconds = 0, wait_seconds = 0;
};

/// How old pushes to a server were: updates of the server between a worker's pull and its push.
struct Staleness {
  std::uint64_t pushes = 0, sum = 0, largest = 0;
};

/// Thread: the scheduler's. Rows are in device memory: they are computed with, and read by value()
/// alone. Spans stay valid for a round; a mixed row's values move to its other half when it is
/// mixed.
class Node {
 public:
  Node(Exchange& exchange, int id, int peers, const std::vector<RowSpec>& rows,
       const NodeMemory& memory);

  int id() const { return id_; }
  int peers() const { return peers_; }  ///< n
  /// W_t. Kept by whoever looks into it: the matrix of a random sequence may be built anew by every
  /// call.
  std::shared_ptr<const topology::MixingMatrix> matrix(Round t) const {
    return exchange_.schedule().at(t);
  }
  bool is_server() const { return id_ >= peers_; }
  std::uint64_t seed() const { return exchange_.options().seed; }

  std::span<float> row(int k) {
    return k == kGradientRow ? memory_.gradient : rows_[static_cast<std::size_t>(k)]->values();
  }
  std::span<float> x() { return row(0); }

  // ---- training. `x` and `g` are any rows of d values.
  /// x ← x after `steps` optimizer steps on this peer's next batches.
  task<void> local_steps(std::span<float> x, int steps);
  /// The same, beside what the round does else: they are done when stepping() is false. Meanwhile x
  /// belongs to them.
  void begin_local_steps(std::span<float> x, int steps);
  bool stepping() const { return stepping_; }
  /// g ← ∇f(x) on the next batch of this peer, or of `shard_of`. The batch stays the next one until
  /// update().
  task<void> gradient(std::span<float> x, std::span<float> g, int shard_of = kOwnShard);
  /// x ← one optimizer step with g; on to the next batch.
  task<void> update(std::span<float> x, std::span<float> g) {
    return update_part(x, g, 0, steps_done_);
  }
  /// The same on a part of the parameters, that begins at value `first`, with the rate of local
  /// step `step`: a server's update.
  task<void> update_part(std::span<float> x, std::span<float> g, std::size_t first,
                         std::uint64_t step);
  /// On to the next batch without an update here: a server does it.
  void skip_update() { ++steps_done_; }
  /// Rows that no neighbour gives to a peer which comes back are as at the start, but for x in the
  /// place of the starting parameters.
  task<void> restart_rows();
  /// The same where a sum over the peers was lost: of those that others begin again too
  /// (RowSpec::Rejoin::restart).
  task<void> restart_sums();
  /// Sends copies of the rows that a peer which joins begins with (RowSpec::Rejoin::from_neighbour)
  /// to `to`.
  void send_state(int to);
  /// Waits for those of `giver`, and takes them; false where it is lost before all have come.
  task<bool> receive_state(int donor);
  /// The optimizer begins anew: its rows are zero.
  task<void> reset_optimizer();
  /// Samples of any peer's shard, and batches of one pass over it.
  std::size_t shard_size(int peer) const { return exchange_.compute().shard_size(peer); }
  std::uint64_t batches_per_epoch(int peer) const {
    return exchange_.compute().batches_per_epoch(peer);
  }

  /// γ of this peer's next step.
  double rate() const { return exchange_.compute().rate(id_, steps_done_ + rate_lead_); }
  /// The next step is step `step` on the schedule of step sizes, and so on from there: for one that
  /// has sat rounds out.
  void set_rate_step(std::uint64_t step) { rate_lead_ = step - steps_done_; }

  // ---- exchange
  /// x_i ← x_i + Σ_j W_t[i][j] (x_j − x_i) on row k: Σ_j W_t[i][j] x_j, W_t[i][i] included.
  task<void> mix(Round t, int k);
  /// The same in two halves, between which row k's front must not be written. After finish the
  /// front is the mixed row; a span of the front taken before holds the row as it was.
  task<void> begin_mix(Round t, int k);
  task<void> finish_mix(int k);

  /// Row k, which is not mixed and is as it is since round t, goes to those who hear this peer in
  /// this round, and theirs come whole: of this round under `sync`, else the newest that have come,
  /// waiting as the policy has it; under `async` with the rounds since which they are so.
  /// Ascending; without those of whom nothing has come, or who were lost. Row k must not change
  /// until sent(k).
  task<std::vector<NeighbourRow>> share(Round t, int k);
  /// After the last round: what others share on row k is for this peer no more.
  void end_sharing(int k) { endpoint_.end_sharing(endpoint_.round(), channel(k)); }
  /// Whether what is shared in round t is for `peer` too: false where it is not there, or has done
  /// its last round.
  bool takes(int peer, Round t) const { return endpoint_.takes(peer, t); }
  /// The round from which on `peer` takes part again; 0 where it was never lost.
  Round entered(int peer) const { return endpoint_.entered(peer); }

  /// Sends part of row k, zero-copy: row k must not change until sent(k). Each row is a channel of
  /// its own, and what goes over it is received in the order sent.
  void send(int to, Round t, int k, std::span<const float> part);
  /// Sends a copy of a part of row k, which may change at once.
  void send_copy(int to, Round t, int k, std::span<const float> part) {
    endpoint_.send_copy(to, t, channel(k), part);
  }
  /// Waits for the next part that anybody sends of row k, in any round, in the order of arrival.
  task<MessageOrigin> receive_any(int k, std::span<float> into, Combine combine);
  /// Whose part that is, if one has come.
  std::optional<MessageOrigin> waiting(int k) const { return endpoint_.waiting(channel(k)); }
  /// Waits until something new has come, or the local steps that were begun are done. May return
  /// for nothing.
  task<void> wait_event();
  /// Waits for the next part that `from` sends of its row k in round t and puts it into, or adds it
  /// to, `into`.
  task<void> receive(int from, Round t, int k, std::span<float> into, Combine combine);
  /// Sends the message of row k in the run's codec to those who hear this peer in round t; own ←
  /// own + what it decodes to.
  task<void> send_coded(Round t, int k, std::span<float> own);
  /// Waits for the message that `from` sends of its row k in round t; into ← into + what it decodes
  /// to.
  task<void> receive_coded(int from, Round t, int k, std::span<float> into);
  /// co_await node.sent(k): until nobody reads row k any more.
  auto sent(int k) { return lender(k).writable(); }

  /// Value `index` of row k, here. On a GPU this waits until all that was asked of it is done.
  float value(int k, std::size_t index) {
    float value = 0;
    exchange_.compute().device().download(&value, &row(k)[index], sizeof(float));
    return value;
  }

  // ---- what survives a round beside rows
  std::span<std::uint64_t> counters() { return counters_; }

  // ---- for the log
  void note_staleness(std::uint64_t updates);

  // ---- arithmetic on rows, co_awaited
  /// out ← out + factor · (a − b)
  auto add_difference(std::span<float> out, std::span<const float> a, std::span<const float> b,
                      float factor = 1.0F) {
    return exchange_.compute().add_difference({out.data(), a.data(), b.data(), out.size(), factor});
  }
  /// y ← y + factor · x
  auto axpy(float factor, std::span<const float> x, std::span<float> y) {
    return exchange_.compute().axpy({factor, x.data(), y.data(), y.size()});
  }
  /// out ← x / divisor, a value of some row
  auto divide(std::span<const float> x, const float* divisor, std::span<float> out) {
    return exchange_.compute().divide({x.data(), divisor, out.data(), out.size()});
  }
  /// y ← factor · y
  auto scale(std::span<float> y, float factor) {
    return exchange_.compute().scale({factor, y.data(), y.size()});
  }
  /// to ← from
  auto copy(std::span<const float> from, std::span<float> to) {
    return exchange_.compute().copy({from.data(), to.data(), to.size()});
  }
  /// y ← value
  auto fill(std::span<float> y, float value) {
    return exchange_.compute().fill({value, y.data(), y.size()});
  }

  // ---- for the engine
  /// Test loss and accuracy of x as it stands.
  struct Evaluation {
    double loss = 0, accuracy = 0;
  };
  task<Evaluation> evaluate();
  /// Whether some of its rows have a sum over the peers that is kept.
  bool keeps_sums() const;
  /// Local steps done: part of what survives a round.
  std::uint64_t steps_done() const { return steps_done_; }
  void set_steps_done(std::uint64_t steps) { steps_done_ = steps; }
  /// Mean batch loss of the steps since the last call; NaN when there were none.
  task<double> take_train_loss();
  NodeTimes times() const { return times_; }
  void set_times(const NodeTimes& times) { times_ = times; }
  /// Of the pushes since the last call.
  Staleness take_staleness() { return std::exchange(staleness_, {}); }
  Endpoint& endpoint() { return endpoint_; }

 private:
  static constexpr int kOwnShard = -1;

  task<void> train(TrainOperation operation, TrainRequest request);
  task<void> restart(std::size_t k);
  task<void> step_aside(std::span<float> x, int steps);
  TrainRequest request_for(std::span<float> x, std::span<float> g) const;
  Channel channel(int k) const {
    return static_cast<Channel>(k == kGradientRow ? rows_.size() : static_cast<std::size_t>(k));
  }
  LeasedRow& lender(int k) {
    return k == kGradientRow ? gradient_lender_ : rows_[static_cast<std::size_t>(k)]->front();
  }

  Exchange& exchange_;
  Endpoint& endpoint_;
  int id_, peers_;
  std::vector<RowSpec> specs_;
  NodeMemory memory_;
  std::vector<std::unique_ptr<MixedRow>> rows_;
  LeasedRow gradient_lender_;
  std::vector<std::uint64_t> counters_;
  std::uint64_t steps_done_ = 0, rate_lead_ = 0;
  task<void> steps_;  ///< that were begun
  bool stepping_ = false;
  NodeTimes times_;
  Staleness staleness_;
};

/// Channels that an algorithm with these rows uses: one a row, and one for the gradient row.
inline Channel channels_of(const std::vector<RowSpec>& rows) {
  return static_cast<Channel>(rows.size() + 1);
}
/// Values of a row on each of these.
std::vector<std::size_t> row_lengths(const std::vector<RowSpec>& rows, std::size_t d);
/// ExchangeOptions::keeps_sum: a tracker's, a push-sum's. Of x peers must agree, and so its rows of
/// W sum to 1. Gradient tracking on what is left of a directed graph is then AB / push-pull (Xin
/// and Khan 2018; Pu, Shi, Xu and Nedić 2021), with its limit.
std::vector<bool> rows_that_keep_sums(const std::vector<RowSpec>& rows);

}  // namespace gossamer::gossip
