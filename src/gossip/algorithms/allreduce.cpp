// All-reduce SGD: every peer takes the same step with the mean of all gradients. How the mean is
// made is a choice; root and all_to_all add in ascending peer order and have the same bits, ring
// adds each part in an order of its own.
#include <algorithm>
#include <numeric>

#include "gossip/node/node.hpp"
#include "gossip/row_slice.hpp"

namespace gossamer::gossip::algorithms::allreduce {
namespace {

struct Options {
  std::string form = "ring";
};

enum Row { kX, kSum };

class AllReduce final : public Algorithm {
 public:
  explicit AllReduce(const Options& options) : form_(options.form) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    std::vector<RowSpec> rows{{.name = "x", .initial = RowSpec::Initial::parameters}};
    if (form_ == "all_to_all") rows.push_back({.name = "sum", .survives = false});
    return rows;
  }
  AlgorithmRequirements requirements() const override {
    return {.mixing_matrix = false,
            .data_weights = DataWeights::mean_gradients,
            .averages = true,
            .common_start = true};
  }
  void set_model(ModelRows model) override { part_ = std::move(model.part); }
  int steps_per_round() const override { return 1; }

  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    const int n = schedule.peers();
    if (form_ == "ring") return ring_partners(i, n);
    if (form_ == "root" && i > 0) return {0};
    std::vector<int> others(static_cast<std::size_t>(n));
    std::iota(others.begin(), others.end(), 0);
    std::erase(others, i);
    return others;
  }

  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    const int n = w.peers();
    if (n == 1) return {};
    if (form_ == "ring") return ring_volumes(d, n);
    const std::uint64_t all = static_cast<std::uint64_t>(n - 1) * d, last = form_ == "root" ? d : 0;
    const auto of = [=](int i) {
      const std::uint64_t values = last > 0 && i > 0 ? d : all;
      return NodeVolume{values, values};
    };
    return {{.message = d, .of = of, .last = last}};
  }

  // g ← (1/n) Σ_j ∇f_j(x; batch_j);  x ← x − γ g
  task<void> round(Node& node, Round t) const override {
    std::span<float> g = node.row(kGradientRow);
    co_await node.gradient(node.x(), g);
    if (form_ == "ring") co_await ring(node, t, g);
    else if (form_ == "root") co_await root(node, t, g);
    else co_await all_to_all(node, t, g);
    if (form_ == "all_to_all") g = node.row(kSum);
    co_await node.update(node.x(), g);
  }

 private:
  /// As ring() sends: part me − s in step s of the reduce-scatter, and me + 1 − s in that of the
  /// all-gather.
  std::vector<ExchangeVolume> ring_volumes(std::size_t d, int n) const {
    std::size_t longest = 0;
    for (int k = 0; k < n; ++k) longest = std::max(longest, slice(d, k, n).size());
    std::vector<ExchangeVolume> volumes;
    for (const int first : {0, 1})
      for (int s = 0; s < n - 1; ++s)
        volumes.push_back({.message = longest, .of = [=, this](int me) {
                             return NodeVolume{slice(d, me + first - s, n).size(),
                                               slice(d, me + first - s - 1, n).size()};
                           }});
    return volumes;
  }

  /// Slice k of n of a row of d values. A worker that holds a part of the model takes what its row
  /// has of the model's slices, so that each value is added in the same order as in whole models.
  RowSlice slice(std::size_t d, int k, int n) const {
    return part_ ? part_->slice(k, n) : row_slice(d, k, n);
  }
  std::span<float> slice(std::span<float> row, int k, int n) const {
    const RowSlice slice = this->slice(row.size(), k, n);
    return row.subspan(slice.begin, slice.size());
  }

  static std::vector<int> ring_partners(int i, int n) {
    const int previous = (i + n - 1) % n, next = (i + 1) % n;
    if (n == 1) return {};
    if (n == 2) return {next};
    return {std::min(previous, next), std::max(previous, next)};
  }

  // Ring reduce-scatter and all-gather (Patarasuk and Yuan 2009): 2(n−1) messages of d/n values a
  // peer, whatever n.
  task<void> ring(Node& node, Round t, std::span<float> g) const {
    const int n = node.peers(), me = node.id(), next = (me + 1) % n, previous = (me + n - 1) % n;
    for (int s = 0; s < n - 1;
         ++s) {  // reduce-scatter: then part me+1 holds the sum over all peers
      node.send(next, t, kGradientRow, slice(g, me - s, n));
      co_await node.receive(previous, t, kGradientRow, slice(g, me - s - 1, n), Combine::add);
    }
    co_await node.sent(kGradientRow);
    co_await node.scale(slice(g, me + 1, n), 1.0F / static_cast<float>(n));
    for (int s = 0; s < n - 1; ++s) {  // all-gather: each finished part goes round
      node.send(next, t, kGradientRow, slice(g, me + 1 - s, n));
      co_await node.receive(previous, t, kGradientRow, slice(g, me - s, n), Combine::replace);
    }
    co_await node.sent(kGradientRow);
  }

  // Reduce to peer 0 and broadcast: a row to the root and one back, and 2(n−1) rows through the
  // root.
  task<void> root(Node& node, Round t, std::span<float> g) const {
    if (node.id() == 0) {
      for (int j = 1; j < node.peers(); ++j)
        co_await node.receive(j, t, kGradientRow, g, Combine::add);
      co_await node.scale(g, 1.0F / static_cast<float>(node.peers()));
      for (int j = 1; j < node.peers(); ++j) node.send(j, t, kGradientRow, g);
      co_await node.sent(kGradientRow);
    } else {
      node.send(0, t, kGradientRow, g);
      co_await node.sent(kGradientRow);
      co_await node.receive(0, t, kGradientRow, g, Combine::replace);
    }
  }

  // Every node sends its gradient to every other node: n−1 rows out and as many in.
  task<void> all_to_all(Node& node, Round t, std::span<float> g) const {
    const std::span<float> sum = node.row(kSum);
    for (int k = 1; k < node.peers(); ++k)
      node.send((node.id() + k) % node.peers(), t, kGradientRow, g);
    for (int j = 0; j < node.peers(); ++j) {
      if (j != node.id())
        co_await node.receive(j, t, kGradientRow, sum, j == 0 ? Combine::replace : Combine::add);
      else if (j == 0) co_await node.copy(g, sum);
      else co_await node.axpy(1.0F, g, sum);
    }
    co_await node.scale(sum, 1.0F / static_cast<float>(node.peers()));
    co_await node.sent(kGradientRow);
  }

  std::string form_;
  std::optional<RowPart> part_;  ///< of a cut model
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "form", &Options::form,
      {.help = "how the mean is made: ring reduce-scatter and all-gather; reduce to peer 0 and "
               "broadcast; every gradient to every node",
       .choices = {"ring", "root", "all_to_all"}});
  return {.name = "allreduce",
          .summary = "all-reduce SGD: every peer takes the step with the mean of all gradients",
          .source = "Patarasuk and Yuan 2009 (ring)",
          .parameters = parameters.specs(),
          .make = make_with<AllReduce>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::allreduce
