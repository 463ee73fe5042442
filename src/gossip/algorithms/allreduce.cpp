// All-reduce SGD: every peer takes the same step with the mean of all gradients. The mean is made by ring reduce-scatter and
// all-gather (Patarasuk and Yuan 2009): 2(n−1) messages of d/n values a peer, whatever n.
#include <algorithm>

#include "gossip/node.hpp"

namespace gossamer::gossip::algorithms {
namespace {

class AllReduce final : public Algorithm {
 public:
  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override { return {{.name = "x", .initial = RowSpec::Initial::parameters}}; }
  AlgorithmNeeds needs() const override { return {.mixing_matrix = false, .equal_start = true}; }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    const int n = schedule.peers(), previous = (i + n - 1) % n, next = (i + 1) % n;
    if (n == 1) return {};
    if (n == 2) return {next};
    return {std::min(previous, next), std::max(previous, next)};
  }

  /// Of the n parts of g, all but one in the reduce-scatter, and all but the one after it in the all-gather.
  topology::ValuesSent values_sent(const topology::MixingSchedule&, std::size_t d) const override {
    return [d](const topology::MixingMatrix& w, int me) -> std::uint64_t {
      const int n = w.peers();
      return n == 1 ? 0 : 2 * d - size(part(d, me + 1, n)) - size(part(d, me + 2, n));
    };
  }

  // g ← (1/n) Σ_j ∇f_j(x; batch_j);  x ← x − γ g
  task<void> round(Node& node, Round t) const override {
    const std::span<float> g = node.row(kGradientRow);
    co_await node.gradient(node.x(), g);
    const int n = node.peers(), me = node.id(), next = (me + 1) % n, previous = (me + n - 1) % n;
    for (int s = 0; s < n - 1; ++s) {  // reduce-scatter: then part me+1 holds the sum over all peers
      node.send(next, t, kGradientRow, part(g, me - s, n));
      co_await node.receive(previous, t, kGradientRow, part(g, me - s - 1, n), Combine::add);
    }
    co_await node.sent(kGradientRow);
    co_await node.scale(part(g, me + 1, n), 1.0F / static_cast<float>(n));
    for (int s = 0; s < n - 1; ++s) {  // all-gather: each finished part goes round
      node.send(next, t, kGradientRow, part(g, me + 1 - s, n));
      co_await node.receive(previous, t, kGradientRow, part(g, me - s, n), Combine::replace);
    }
    co_await node.sent(kGradientRow);
    co_await node.update(node.x(), g);
  }

 private:
  struct Part {
    std::size_t begin, end;
  };
  static std::size_t size(const Part& part) { return part.end - part.begin; }

  /// Part k (modulo n) of n nearly equal ones; whole cache lines, so that parts do not share one.
  static Part part(std::size_t d, int k, int n) {
    constexpr std::size_t kLine = 16;
    const std::size_t lines = (d + kLine - 1) / kLine;
    const auto index = static_cast<std::size_t>(((k % n) + n) % n), parts = static_cast<std::size_t>(n);
    return {std::min(d, index * lines / parts * kLine), std::min(d, (index + 1) * lines / parts * kLine)};
  }
  static std::span<float> part(std::span<float> g, int k, int n) {
    const Part place = part(g.size(), k, n);
    return g.subspan(place.begin, size(place));
  }
};

}  // namespace

AlgorithmKind allreduce() {
  return {.name = "allreduce",
          .summary = "all-reduce SGD: one step with the mean of all gradients, by ring reduce-scatter and all-gather",
          .source = "Patarasuk and Yuan 2009",
          .parameters = {},
          .make = make_plain<AllReduce>};
}

}  // namespace gossamer::gossip::algorithms
