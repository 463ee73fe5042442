// A node, a peer or a server of a baseline, as an algorithm sees it: its rows, its training, and
// the exchange with other nodes. Algorithms use nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gossip/node/node_training.hpp"

namespace gossamer::gossip {

/// The age of the pushes to a server: updates of the server between a worker's pull and its push.
struct Staleness {
  std::uint64_t pushes = 0, sum = 0, largest = 0;
};

/// Thread: the scheduler's.
class Node : public NodeTraining {
 public:
  using NodeTraining::NodeTraining;

  /// W_t. The caller keeps it while it looks into it: the matrix of a random sequence may be built
  /// anew by every call.
  std::shared_ptr<const topology::MixingMatrix> matrix(Round t) const {
    return exchange_.schedule().at(t);
  }
  std::uint64_t seed() const { return exchange_.options().seed; }

  // ---- mixing
  /// x_i ← x_i + Σ_j W_t[i][j] (x_j − x_i) on row k: Σ_j W_t[i][j] x_j, W_t[i][i] included.
  task<void> mix(Round t, int k);
  /// The same in two halves, between which row k's front must not be written. After finish the
  /// front is the mixed row; a span of the front taken before holds the row as it was.
  /// Mixes that are under way at once are finished in the order in which they were begun: a coded
  /// row is taken from its link no earlier, and the next one lies behind it.
  task<void> begin_mix(Round t, int k);
  task<void> finish_mix(int k);

  // ---- sharing
  /// Sends row k, which is not mixed and has not changed since round `since`, to the out-neighbours
  /// of the round under way, and returns the rows of the in-neighbours whole, in ascending order:
  /// those of this round under `sync`, else the newest that have arrived, waiting as the policy
  /// requires; under `async` with the rounds since which they have not changed. A neighbour whose
  /// row is missing is left out. Row k must not change until sent(k).
  task<std::vector<NeighbourRow>> share(Round since, int k);
  /// After the last round: neighbours need share row k no more with this peer.
  void announce_last_share(int k) {
    endpoint_.mixer().announce_last_share(endpoint_.round(), channel(k));
  }
  /// Whether a row shared in round t reaches a use at `peer`: false if the peer is absent or has
  /// finished its last round.
  bool accepts_share(int peer, Round t) const;
  /// The round from which on `peer`, which was lost, takes part again; 0 if it was never lost.
  Round present_since(int peer) const { return endpoint_.view().present_since(peer); }

  // ---- messages of an algorithm of its own. Each row is a channel: its messages are received in
  // the order sent.
  /// Sends part of row k without a copy: row k must not change until sent(k).
  void send(int to, Round t, int k, std::span<const float> part);
  /// Sends a copy of a part of row k, which may change at once.
  void send_copy(int to, Round t, int k, std::span<const float> part) {
    endpoint_.messenger().send_copy(to, t, channel(k), part);
  }
  /// co_await node.sent(k): until no link reads row k any more.
  auto sent(int k) { return leased(k).writable(); }
  /// Waits for the next part that `from` sends of its row k in round t, and puts it into, or adds
  /// it to, `into`.
  task<void> receive(int from, Round t, int k, std::span<float> into, Combine combine);
  /// Waits for the next part that any node sends of row k, in any round, in the order of arrival.
  task<MessageOrigin> receive_any(int k, std::span<float> into, Combine combine);
  /// The origin of the part that receive_any() would take now, if one has arrived.
  std::optional<MessageOrigin> peek_any(int k) const {
    return endpoint_.messenger().peek_any(channel(k));
  }
  /// Waits until a chunk has arrived, or the local steps that were begun are done. May wake
  /// spuriously. `from`: the peer without whose message the algorithm cannot go on.
  task<void> wait_event(std::optional<int> from = {});
  /// Sends the message of row k in the run's codec to the out-neighbours of round t; own ← own +
  /// its decoded values.
  task<void> send_coded(Round t, int k, std::span<float> own);
  /// Waits for the message that `from` sends of its row k in round t; into ← into + its decoded
  /// values.
  task<void> receive_coded(int from, Round t, int k, std::span<float> into);

  // ---- for membership
  /// Sends copies of the rows that a joining peer starts with (RowSpec::Rejoin::from_donor), on a
  /// channel of StartingRows, as messages of round t.
  void send_state(int to, Channel channel, Round t);
  /// Waits for such rows of `donor`, and takes them; false if it is lost before all have arrived.
  task<bool> receive_state(int donor, Channel channel, Round t);

  // ---- for the engine
  Endpoint& endpoint() { return endpoint_; }
  /// Of a server, for the log: a push came `updates` updates after its worker's pull.
  void record_staleness(std::uint64_t updates);
  /// Of the pushes since the last call.
  Staleness take_staleness() { return std::exchange(staleness_, {}); }

 private:
  Staleness staleness_;
};

}  // namespace gossamer::gossip
