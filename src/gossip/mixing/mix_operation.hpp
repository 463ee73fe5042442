// The mix of one row that is under way: the pieces whose values have arrived, and the pieces that
// are being computed.
#pragma once

#include <coroutine>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/compute.hpp"
#include "gossip/messaging/messenger.hpp"
#include "gossip/mixing/neighbour_row.hpp"
#include "gossip/peer_view.hpp"
#include "gossip/process/process_context.hpp"

namespace gossamer::gossip {

/// The rows of a mix that are here, in ascending order of their peers.
struct WholeRows {
  Round round = 0;  ///< of the mix
  std::vector<gpu::MixSource> sources;
  std::vector<int> from;
  std::vector<std::shared_ptr<const BufferedRow>> held;  ///< keeps the sources as they are
};

/// Mixes in pieces: a piece is computed as soon as every neighbour's chunk covers it, so nothing is
/// copied. Neighbours are added in ascending order, whatever the order of arrival. Thread: the
/// scheduler's.
class MixOperation final : public Inbox::Consumer, public MixListener {
 public:
  /// A mix from the chunks in the neighbours' inboxes.
  struct Stream {
    Round round = 0;
    Channel channel = 0;
    std::span<const float> x;                         ///< this peer's row
    std::span<const topology::Neighbour> neighbours;  ///< ascending
    std::span<const float> base;      ///< the row that differences are taken to: x, or zeros
    std::optional<float> own_weight;  ///< of x, where x is one of the sources
    bool as_difference = false;       ///< without the first term of the sum
    double row_sum = 1;               ///< the weights are divided by it
  };

  /// All outlive the operation.
  MixOperation(Messenger& messenger, Compute& compute, Scheduler& scheduler)
      : messenger_(messenger), compute_(compute), scheduler_(scheduler) {}

  /// out ← base + own_weight (x − base) + Σ_j W[i][j] / row_sum (x_j − base).
  void begin(const Stream& stream, std::span<float> out);
  /// out ← x + Σ_j W[i][j] (x_j − x), or the second term alone, with rows that are here already;
  /// they are held until end().
  void begin(std::span<const float> x, std::span<float> out, WholeRows rows, bool as_difference);
  bool begun() const { return active_; }
  /// co_await operation.finished(): until all pieces are computed. One waiter.
  auto finished() {
    struct Awaiter {
      MixOperation& operation;
      bool await_ready() const { return operation.done(); }
      void await_suspend(std::coroutine_handle<> waiter) { operation.waiter_ = waiter; }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }
  /// Ends a mix that is finished.
  void end();

  /// Continues without the values of `peer` that have not arrived, and returns the deviation; none
  /// if the peer's row is not a source, or has arrived. advance() has to follow.
  std::optional<Deviation> drop_source(int peer);
  /// Submits the pieces that have become complete.
  void advance();

  void arrived() override { advance(); }
  bool is_waiting() const override { return active_ && submitted_ < stream_.x.size(); }
  void mixed(gpu::MixRequest& piece, double seconds) override;

  /// Time spent in arithmetic so far.
  double seconds() const { return seconds_; }

 private:
  struct Source {
    int peer;
    float weight;
    Inbox* inbox;
  };
  /// A piece that is being computed, and the chunks that end with it.
  struct Piece {
    gpu::MixRequest request;
    std::vector<gpu::MixSource> sources;
    std::vector<Chunk> consumed;
  };

  bool done() const { return submitted_ == stream_.x.size() && in_flight_ == 0; }
  std::size_t available();
  Piece next_piece(std::size_t length);
  void submit(Piece piece);

  Messenger& messenger_;
  Compute& compute_;
  Scheduler& scheduler_;
  Stream stream_;
  std::span<float> out_;
  bool active_ = false;
  std::vector<Source> sources_;
  std::size_t submitted_ = 0;  ///< values whose pieces were submitted
  int in_flight_ = 0;          ///< pieces
  std::deque<Piece> pieces_;   ///< in flight, in the order submitted
  std::vector<std::shared_ptr<const BufferedRow>> held_rows_;
  std::coroutine_handle<> waiter_;
  double seconds_ = 0;
};

/// The operations of a peer's mixes, one by channel. They outlive the coroutines that begin them:
/// the device may still compute a piece. Thread: the scheduler's.
class MixOperations {
 public:
  /// Both outlive the object.
  MixOperations(Messenger& messenger, const ProcessContext& process)
      : messenger_(messenger), process_(process) {}

  MixOperation& of(Channel channel);
  auto begin() const { return by_channel_.begin(); }
  auto end() const { return by_channel_.end(); }
  /// Time spent in arithmetic so far.
  double seconds() const;

 private:
  Messenger& messenger_;
  const ProcessContext& process_;
  std::map<Channel, std::unique_ptr<MixOperation>> by_channel_;
};

}  // namespace gossamer::gossip
