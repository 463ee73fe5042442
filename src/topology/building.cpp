#include "topology/building.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.hpp"
#include "topology/weights.hpp"

namespace gossamer::topology {
namespace {

class StaticTopology final : public Topology {
 public:
  StaticTopology(Graph graph, std::vector<int> lattice)
      : graph_(std::move(graph)), lattice_(std::move(lattice)) {}
  int peers() const override { return graph_.peers(); }
  int period() const override { return 1; }
  Graph graph(Round) const override { return graph_; }
  std::vector<int> lattice() const override { return lattice_; }

 private:
  Graph graph_;
  std::vector<int> lattice_;
};

/// Rounds by their weights.
class WeightedTopology final : public Topology {
 public:
  WeightedTopology(std::vector<WeightRows> rounds, std::vector<int> lattice)
      : rounds_(std::move(rounds)), lattice_(std::move(lattice)) {}

  int peers() const override { return static_cast<int>(rounds_.front().size()); }
  int period() const override { return static_cast<int>(rounds_.size()); }
  std::optional<WeightRows> weights(Round t) const override { return rounds_[t % rounds_.size()]; }
  std::vector<int> lattice() const override { return lattice_; }
  Graph graph(Round t) const override {
    const WeightRows& rows = rounds_[t % rounds_.size()];
    Graph graph{std::vector<std::vector<int>>(rows.size())};
    for (std::size_t i = 0; i < rows.size(); ++i)  // ascending, so every list is
      for (const auto& [peer, weight] : rows[i])
        if (peer != static_cast<int>(i) && weight != 0)
          graph.out[static_cast<std::size_t>(peer)].push_back(static_cast<int>(i));
    return graph;
  }

 private:
  std::vector<WeightRows> rounds_;
  std::vector<int> lattice_;
};

WeightRows rows_of(int peers, const std::vector<WeightedEdge>& edges) {
  WeightRows rows(static_cast<std::size_t>(peers));
  for (const auto& [a, b, weight] : edges) {
    GOSSAMER_CHECK(a != b && weight > 0, "an edge joins two different peers and carries something");
    rows[static_cast<std::size_t>(a)].push_back({b, weight});
    rows[static_cast<std::size_t>(b)].push_back({a, weight});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::sort(rows[i].begin(), rows[i].end(),
              [](const Neighbour& x, const Neighbour& y) { return x.peer < y.peer; });
    rows[i] = complete_row(static_cast<int>(i), std::move(rows[i]));
  }
  return rows;
}

int largest_divisor_up_to_root(int n) {
  int best = 1;
  for (int divisor = 1; divisor <= n / divisor; ++divisor)
    if (n % divisor == 0) best = divisor;
  return best;
}

/// The layout that the options fix or leave to us, long sides or short; none when the product
/// cannot be n.
std::optional<Layout> lay_out(int n, const LayoutOptions& options) {
  const int rows = options.rows > 0   ? options.rows
                   : options.cols > 0 ? n / options.cols
                                      : largest_divisor_up_to_root(n);
  if (rows == 0) return std::nullopt;
  const int cols = options.cols > 0 ? options.cols : n / rows;
  if (std::int64_t{rows} * cols != n) return std::nullopt;
  return Layout{rows, cols};
}

}  // namespace

std::unique_ptr<Topology> static_topology(Graph graph, std::vector<int> lattice) {
  return std::make_unique<StaticTopology>(std::move(graph), std::move(lattice));
}

std::unique_ptr<Topology> weighted_topology(int peers,
                                            const std::vector<std::vector<WeightedEdge>>& rounds) {
  GOSSAMER_CHECK(!rounds.empty(), "a period has a round");
  std::vector<WeightRows> rows;
  rows.reserve(rounds.size());
  for (const auto& edges : rounds) rows.push_back(rows_of(peers, edges));
  return std::make_unique<WeightedTopology>(std::move(rows), std::vector<int>{});
}

std::unique_ptr<Topology> weighted_topology(WeightRows rows, std::vector<int> lattice) {
  return std::make_unique<WeightedTopology>(std::vector<WeightRows>{std::move(rows)},
                                            std::move(lattice));
}

Error cannot_build(const std::string& kind, int peers, const std::string& why,
                   const std::function<bool(int)>& works) {
  int below = peers - 1, above = peers + 1;
  while (below > 1 && !works(below)) --below;
  while (above <= kMaximumPeers && !works(above)) ++above;
  std::string hint;
  if (below > 1 && above <= kMaximumPeers)
    hint = fmt::format("; n = {} or n = {} works", below, above);
  else if (below > 1) hint = fmt::format("; n = {} works", below);
  else if (above <= kMaximumPeers) hint = fmt::format("; n = {} works", above);
  return {ErrorKind::invalid,
          fmt::format("topology {} cannot be built for {} peers: {}{}", kind, peers, why, hint)};
}

const ParameterSet<LayoutOptions>& layout_parameters() {
  static const auto set =
      ParameterSet<LayoutOptions>()
          .add("rows", &LayoutOptions::rows,
               {.help = "peers in a column; 0: from cols, or the squarest layout",
                .minimum = 0,
                .maximum = kMaximumPeers})
          .add("cols", &LayoutOptions::cols,
               {.help = "peers in a row; 0: from rows, or the squarest layout",
                .minimum = 0,
                .maximum = kMaximumPeers});
  return set;
}

Result<Layout> choose_layout(const LayoutRule& rule, int peers, const LayoutOptions& options) {
  const bool chosen = options.rows == 0 && options.cols == 0;
  const int minimum = chosen ? rule.minimum_chosen_side : rule.minimum_side;
  const auto works = [&](int n) {
    const std::optional<Layout> layout = lay_out(n, options);
    return layout && layout->rows >= minimum && layout->cols >= minimum;
  };
  const std::optional<Layout> layout = lay_out(peers, options);
  if (layout && (peers == 1 || works(peers))) return *layout;

  std::string why;
  if (!layout) {
    const auto side = [](int given) {
      return given > 0 ? fmt::to_string(given) : std::string("any");
    };
    why = fmt::format("rows = {} by cols = {} is not {}", side(options.rows), side(options.cols),
                      peers);
  } else {
    why = fmt::format("{} by {} {} the {}: {}", layout->rows, layout->cols,
                      chosen ? "is" : "would be", chosen ? "squarest layout" : "layout", rule.why);
  }
  return cannot_build(rule.kind, peers, why, works);
}

}  // namespace gossamer::topology
