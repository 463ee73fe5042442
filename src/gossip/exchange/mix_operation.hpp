// One mix under way: which pieces are here, which are being computed, who waits. Internal to the
// exchange.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/exchange/buffered_mix.hpp"
#include "gossip/exchange/exchange.hpp"

namespace gossamer::gossip {

class MixOperation final : public Inbox::Consumer, public MixListener {
 public:
  explicit MixOperation(Endpoint& endpoint) : endpoint_(endpoint) {}

  /// Sync: x mixed into `out` with round t's rows of the neighbours, from the chunks in their
  /// inboxes.
  void begin(Round t, Channel channel, std::span<const float> x, std::span<float> out,
             std::span<const topology::Neighbour> neighbours);
  /// Sync, where row i of W does not sum to 1: own · x + Σ_j W[i][j] x_j, which is differences to
  /// zeros. Differences to x would take from a peer with many neighbours what has to be added
  /// again.
  void begin_sum(Round t, Channel channel, std::span<const float> x, std::span<float> out,
                 std::span<const topology::Neighbour> neighbours, double own);
  /// The other policies: with rows that are here already, which are kept until the mix is done.
  void begin(std::span<const float> x, std::span<float> out, BufferedMix::Rows rows);

  void end();
  /// Goes on without what has not come of a source's row; nothing where it is no source. arrived()
  /// has to follow.
  std::optional<Deviation> lose(int peer);

  auto finished() {
    struct Awaiter {
      MixOperation& operation;
      bool await_ready() const { return operation.done(); }
      void await_suspend(std::coroutine_handle<> waiter) { operation.waiter_ = waiter; }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }

  void arrived() override;
  void mixed(gpu::MixRequest& piece, double seconds) override;

 private:
  struct Source {
    int peer;
    float weight;
    Inbox* inbox;
  };
  /// A piece [begin, begin + request.length) that is being computed, and the chunks that end with
  /// it.
  struct Piece {
    gpu::MixRequest request;
    std::vector<gpu::MixSource> sources;
    std::vector<Chunk> consumed;
  };

  void receive(Round t, Channel channel, std::span<const float> x, std::span<float> out,
               std::span<const topology::Neighbour> neighbours);
  bool done() const { return submitted_ == x_.size() && in_flight_ == 0; }
  /// Values from `submitted_` on that every neighbour's first chunk has; 0 when one has none.
  std::size_t available();
  /// Takes the next `length` values of every neighbour's chunks.
  Piece next_piece(std::size_t length);
  void submit(Piece piece);

  Endpoint& endpoint_;
  Round round_ = 0;
  Channel channel_ = 0;
  bool active_ = false;
  std::span<const float> x_;
  std::span<const float> base_;  ///< what differences are taken to: x, or zeros
  std::optional<float> own_;     ///< the weight of x, where that is one of the sources
  std::span<float> out_;
  std::vector<Source> sources_;
  std::size_t submitted_ = 0;
  int in_flight_ = 0;
  std::deque<Piece> pieces_;
  std::vector<std::shared_ptr<const BufferedRow>> held_rows_;
  std::coroutine_handle<> waiter_;
};

}  // namespace gossamer::gossip
