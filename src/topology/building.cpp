#include "topology/building.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/check.hpp"
#include "base/philox.hpp"
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

bool adjacent(const Graph& graph, std::uint32_t a, std::uint32_t b) {
  const auto& out = graph.out[a].size() < graph.out[b].size() ? graph.out[a] : graph.out[b];
  const auto other = static_cast<int>(graph.out[a].size() < graph.out[b].size() ? b : a);
  return std::find(out.begin(), out.end(), other) != out.end();
}

/// Whether any two of these points could still be joined.
bool any_suitable(const Graph& graph, std::vector<std::uint32_t> points) {
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = i + 1; j < points.size(); ++j)
      if (!adjacent(graph, points[i], points[j])) return true;
  return false;
}

// Steger and Wormald 1999: every peer is `degree` points, points are paired at random, pairs that
// would be a loop or a double edge are undone and drawn again among themselves. Empty where only
// such are left.
Graph pair_points(int n, int degree, RandomStream& random) {
  Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(n))};
  std::vector<std::uint32_t> points;
  for (int i = 0; i < n; ++i)
    points.insert(points.end(), static_cast<std::size_t>(degree), static_cast<std::uint32_t>(i));
  while (!points.empty()) {
    random.shuffle(points);
    std::vector<std::uint32_t> left;
    for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
      const std::uint32_t a = points[i], b = points[i + 1];
      if (a == b || adjacent(graph, a, b)) {
        left.insert(left.end(), {a, b});
        continue;
      }
      graph.out[a].push_back(static_cast<int>(b));
      graph.out[b].push_back(static_cast<int>(a));
    }
    if (left.size() == points.size() && !any_suitable(graph, left)) return {};
    points = std::move(left);
  }
  for (auto& out : graph.out) std::sort(out.begin(), out.end());
  return graph;
}

Graph complement(const Graph& graph) {
  Graph result{std::vector<std::vector<int>>(graph.out.size())};
  for (std::size_t i = 0; i < graph.out.size(); ++i)
    for (int j = 0; j < graph.peers(); ++j)
      if (j != static_cast<int>(i) &&
          !std::binary_search(graph.out[i].begin(), graph.out[i].end(), j))
        result.out[i].push_back(j);
  return result;
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

std::vector<int> draw_shifts(int n, int m, std::uint64_t seed) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    RandomStream random(seed, kNoPeer, Purpose::topology, attempt);
    std::vector<int> shifts(static_cast<std::size_t>(m));
    int common = n;
    for (int& shift : shifts) {
      shift = 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(n - 1)));
      common = std::gcd(common, shift);
    }
    if (common == 1) return shifts;
  }
}

bool regular_exists(int n, int degree) { return n > degree && n % 2 * (degree % 2) == 0; }

Graph draw_regular(int n, int degree, RandomStream& random) {
  if (2 * degree < n) return pair_points(n, degree, random);
  const Graph lacking = pair_points(n, n - 1 - degree, random);
  return lacking.peers() == 0 ? lacking : complement(lacking);
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
