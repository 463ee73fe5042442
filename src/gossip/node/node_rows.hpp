// A node's rows and the arithmetic on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gossip/algorithm.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/row.hpp"

namespace gossamer::gossip {

/// The number of the row for gradients. An algorithm's own rows have numbers from 0.
inline constexpr int kGradientRow = -1;

/// A node's rows in device memory, made by the engine: the front and back halves by row of
/// Algorithm::rows(), each of RowSpec::length() values (the back is empty where the row is not
/// mixed), and the rows that the trainer works in.
struct NodeMemory {
  std::vector<std::span<float>> front, back;
  std::span<float> gradient;            ///< d values if the algorithm trains
  std::vector<std::span<float>> state;  ///< the optimizer's rows of d values, zero at the start
  std::size_t counters = 0;             ///< Algorithm::counters()
};

/// Rows are in device memory: they are computed with, and read by value() alone. Spans stay valid
/// for a round; a mixed row's values move to its other half when it is mixed. Thread: the
/// scheduler's.
class NodeRows {
 public:
  /// `id`: 0 … peers−1 for a peer, higher for a server. The exchange and the memory outlive it.
  NodeRows(Exchange& exchange, int id, int peers, const std::vector<RowSpec>& rows,
           const NodeMemory& memory);

  int id() const { return id_; }
  int peers() const { return peers_; }  ///< n
  bool is_server() const { return id_ >= peers_; }

  std::span<float> row(int k) {
    return k == kGradientRow ? memory_.gradient : rows_[static_cast<std::size_t>(k)]->values();
  }
  std::span<float> x() { return row(0); }
  /// Value `index` of row k, in host memory. Waits for the device.
  float value(int k, std::size_t index);
  /// What survives a round beside the rows: Algorithm::counters() numbers.
  std::span<std::uint64_t> counters() { return counters_; }

  // ---- arithmetic on rows, co_awaited
  /// out ← out + factor · (a − b)
  auto add_difference(std::span<float> out, std::span<const float> a, std::span<const float> b,
                      float factor = 1.0F) {
    return exchange_.compute().add_difference({out.data(), a.data(), b.data(), out.size(), factor});
  }
  /// x ← x + (a − b), and copy ← x in the same pass over memory. `copy` is a row k that does not
  /// survive a round; holds_x(k) is true from now on.
  auto add_difference_to_x(std::span<const float> a, std::span<const float> b, int copy) {
    copy_of_x_ = copy;
    const std::span<float> x = this->x();
    return exchange_.compute().add_difference(
        {x.data(), a.data(), b.data(), x.size(), 1.0F, row(copy).data()});
  }
  /// Whether row k is known to hold the values of x, because the last round wrote them to both.
  /// The algorithm calls forget_copy() before one of the rows is written again; x is written by
  /// nothing else once the first round has begun.
  bool holds_x(int k) const { return copy_of_x_ == k; }
  void forget_copy() { copy_of_x_.reset(); }
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
  /// Any other request that the batches of Compute take.
  template <class Request>
  auto run(const Request& request) {
    return exchange_.compute().operate(request);
  }
  /// y ← value
  auto fill(std::span<float> y, float value) {
    return exchange_.compute().fill({value, y.data(), y.size()});
  }

  // ---- for membership
  /// Sets the rows that a joining peer does not receive to their starting values, with x in the
  /// place of the starting parameters.
  task<void> reinitialise_rows();
  /// The same after part of a conserved sum was lost: of the rows that all peers reinitialise
  /// (RowSpec::Rejoin::reinitialise).
  task<void> reinitialise_sums();
  /// Whether a row has a conserved sum.
  bool conserves_sums() const;

 protected:
  MixedRow& mixed_row(int k) { return *rows_[static_cast<std::size_t>(k)]; }
  LeasedRow& leased(int k) { return k == kGradientRow ? gradient_row_ : mixed_row(k).front(); }
  /// Each row has a channel of its own.
  Channel channel(int k) const {
    return static_cast<Channel>(k == kGradientRow ? rows_.size() : static_cast<std::size_t>(k));
  }

  Exchange& exchange_;
  Endpoint& endpoint_;
  std::vector<RowSpec> specs_;
  NodeMemory memory_;

 private:
  task<void> reinitialise(std::size_t k);

  int id_, peers_;
  std::vector<std::unique_ptr<MixedRow>> rows_;
  LeasedRow gradient_row_;
  std::vector<std::uint64_t> counters_;
  std::optional<int> copy_of_x_;
};

}  // namespace gossamer::gossip
