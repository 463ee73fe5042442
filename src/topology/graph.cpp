#include "topology/graph.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"

namespace gossamer::topology {
namespace {

constexpr int kNotReached = -1;

/// Hops from `source` to every peer, breadth first; ends as soon as all are reached.
std::vector<int> hops_from(const Graph& graph, int source) {
  std::vector<int> hops(graph.out.size(), kNotReached);
  std::vector<int> reached = {source};
  reached.reserve(graph.out.size());
  hops[static_cast<std::size_t>(source)] = 0;
  for (std::size_t next = 0; next < reached.size() && reached.size() < graph.out.size(); ++next) {
    const auto from = static_cast<std::size_t>(reached[next]);
    for (const int to : graph.out[from]) {
      int& to_hops = hops[static_cast<std::size_t>(to)];
      if (to_hops != kNotReached) continue;
      to_hops = hops[from] + 1;
      reached.push_back(to);
    }
  }
  return hops;
}

struct Far {
  int peer = 0, hops = 0;
};

Far farthest(const std::vector<int>& hops) {
  const auto place = std::max_element(hops.begin(), hops.end());
  return {static_cast<int>(place - hops.begin()), *place};
}

/// Of two pairs that are far apart, as corners are, the peer whose farthest of the four is nearest:
/// a centre, or nearly.
int centre_of(const Graph& graph) {
  std::vector<int> worst(graph.out.size(), 0);
  const auto look_from = [&](int corner) {
    std::vector<int> hops = hops_from(graph, corner);
    for (std::size_t i = 0; i < worst.size(); ++i) worst[i] = std::max(worst[i], hops[i]);
    return hops;
  };
  const auto nearest = [&worst] {
    return static_cast<int>(std::min_element(worst.begin(), worst.end()) - worst.begin());
  };
  look_from(farthest(look_from(farthest(hops_from(graph, 0)).peer)).peer);
  look_from(farthest(look_from(farthest(hops_from(graph, nearest())).peer)).peer);
  return nearest();
}

/// Finds peers that have equal closed neighbourhoods, as within a clique (true twins): a third peer
/// is equally far from both. Records the neighbourhoods that it was asked about.
class ClosedNeighbourhoods {
 public:
  explicit ClosedNeighbourhoods(const Graph& graph) : graph_(graph) {}
  bool seen_twin_of(int peer) {
    std::vector<int> closed = graph_.out[static_cast<std::size_t>(peer)];
    closed.insert(std::lower_bound(closed.begin(), closed.end(), peer), peer);
    return !seen_.insert(std::move(closed)).second;
  }

 private:
  const Graph& graph_;
  std::set<std::vector<int>> seen_;
};

// iFUB (Crescenzi et al. 2013): two peers within i hops of a centre are within 2i of each other, so
// peers are asked from the farthest in, and once a distance of 2i was seen, those within i hops
// need not be.
Diameter symmetric_diameter(const Graph& graph, double most_looks) {
  const int centre = centre_of(graph);
  const std::vector<int> hops = hops_from(graph, centre);
  const int radius = farthest(hops).hops;
  std::vector<std::vector<int>> at_distance(static_cast<std::size_t>(radius) + 1);
  for (int i = 0; i < graph.peers(); ++i)
    at_distance[static_cast<std::size_t>(hops[static_cast<std::size_t>(i)])].push_back(i);
  int longest = radius;
  ClosedNeighbourhoods neighbourhoods(graph);
  for (int i = radius; i > 0; --i) {
    for (const int source : at_distance[static_cast<std::size_t>(i)]) {
      if (longest >= 2 * i) return {longest, true};
      if (neighbourhoods.seen_twin_of(source)) continue;
      if (most_looks-- <= 0) return {longest, false};
      longest = std::max(longest, farthest(hops_from(graph, source)).hops);
    }
  }
  return {longest, true};
}

/// Colours edges with Δ + 1 colours or fewer, edges of a peer differently (Misra and Gries
/// 1992). Takes n² integers.
class EdgeColouring {
 public:
  explicit EdgeColouring(const Graph& graph) : peers_(graph.peers()) {
    for (const auto& out : graph.out)
      colours_ = std::max(colours_, static_cast<int>(out.size()) + 1);
    other_.assign(static_cast<std::size_t>(peers_ * colours_), kNone);
    colour_.assign(static_cast<std::size_t>(peers_ * peers_), kNone);
    for (int u = 0; u < peers_; ++u)
      for (const int v : graph.out[static_cast<std::size_t>(u)])
        if (v > u) add(graph.out[static_cast<std::size_t>(u)], u, v);
  }

  /// The edges of each colour that is used.
  std::vector<std::vector<Edge>> matchings() const {
    std::vector<std::vector<Edge>> found;
    for (int c = 0; c < colours_; ++c) {
      std::vector<Edge> matching;
      for (int u = 0; u < peers_; ++u)
        if (const int v = other(u, c); v > u) matching.push_back({u, v});
      if (!matching.empty()) found.push_back(std::move(matching));
    }
    return found;
  }

 private:
  static constexpr int kNone = -1;

  /// The peer at the other end of u's edge of colour c.
  int& other(int u, int c) { return other_[static_cast<std::size_t>(u * colours_ + c)]; }
  int other(int u, int c) const { return other_[static_cast<std::size_t>(u * colours_ + c)]; }
  int& colour(int u, int v) { return colour_[static_cast<std::size_t>(u * peers_ + v)]; }
  bool is_free(int u, int c) const { return other(u, c) == kNone; }
  int free_colour(int u) const {
    int c = 0;
    while (!is_free(u, c)) ++c;
    return c;
  }
  void paint(int u, int v, int c) {
    colour(u, v) = colour(v, u) = c;
    other(u, c) = v;
    other(v, c) = u;
  }
  void erase(int u, int v) {
    const int c = colour(u, v);
    other(u, c) = other(v, c) = kNone;
    colour(u, v) = colour(v, u) = kNone;
  }

  /// Swaps colours c and d on the path from u, where c is free.
  void invert(int u, int c, int d) {
    std::vector<int> path{u};
    for (int wanted = d; !is_free(path.back(), wanted); wanted = wanted == d ? c : d)
      path.push_back(other(path.back(), wanted));
    for (std::size_t k = 0; k + 1 < path.size(); ++k) erase(path[k], path[k + 1]);
    for (std::size_t k = 0; k + 1 < path.size(); ++k)
      paint(path[k], path[k + 1], k % 2 == 0 ? c : d);
  }

  /// The edge (u, v). A fan of u is v, w_1, w_2, …, neighbours of u, each reached by an edge of u
  /// whose colour is free at the one before; such colours can move down the fan by one.
  void add(const std::vector<int>& neighbours, int u, int v) {
    std::vector<int> fan{v};
    for (bool grown = true; grown;) {
      grown = false;
      for (const int w : neighbours)
        if (colour(u, w) != kNone && is_free(fan.back(), colour(u, w)) &&
            std::ranges::find(fan, w) == fan.end()) {
          fan.push_back(w);
          grown = true;
          break;
        }
    }
    const int c = free_colour(u), d = free_colour(fan.back());
    if (c != d) invert(u, c, d);
    std::size_t last = 0;
    while (!is_free(fan[last], d)) ++last;
    std::vector<int> moved;
    for (std::size_t k = 1; k <= last; ++k) {
      moved.push_back(colour(u, fan[k]));
      erase(u, fan[k]);
    }
    for (std::size_t k = 0; k < last; ++k) paint(u, fan[k], moved[k]);
    paint(u, fan[last], d);
  }

  int peers_, colours_ = 1;
  std::vector<int> other_, colour_;
};

}  // namespace

Graph undirected_graph(int peers, std::span<const Edge> edges) {
  Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(peers))};
  for (const auto& [a, b] : edges) {
    GOSSAMER_CHECK(a != b && a >= 0 && b >= 0 && a < peers && b < peers,
                   "an edge joins two different peers of the graph");
    graph.out[static_cast<std::size_t>(a)].push_back(b);
    graph.out[static_cast<std::size_t>(b)].push_back(a);
  }
  for (auto& out : graph.out) {
    std::sort(out.begin(), out.end());
    GOSSAMER_CHECK(std::adjacent_find(out.begin(), out.end()) == out.end(),
                   "an edge is listed once");
  }
  return graph;
}

Graph reversed(const Graph& graph) {
  Graph result{std::vector<std::vector<int>>(graph.out.size())};
  std::vector<std::size_t> degrees(graph.out.size(), 0);
  for (const auto& out : graph.out)
    for (const int to : out) ++degrees[static_cast<std::size_t>(to)];
  for (std::size_t i = 0; i < degrees.size(); ++i) result.out[i].reserve(degrees[i]);
  for (int from = 0; from < graph.peers();
       ++from)  // ascending, so every list of the result is ascending too
    for (const int to : graph.out[static_cast<std::size_t>(from)])
      result.out[static_cast<std::size_t>(to)].push_back(from);
  return result;
}

// Going through the lists in order, the out-neighbours of j come in the order of j's own list: a
// cursor a peer is enough.
bool is_symmetric(const Graph& graph) {
  std::vector<std::size_t> next(graph.out.size(), 0);
  for (int from = 0; from < graph.peers(); ++from)
    for (const int to : graph.out[static_cast<std::size_t>(from)]) {
      const auto& back = graph.out[static_cast<std::size_t>(to)];
      const std::size_t at = next[static_cast<std::size_t>(to)]++;
      if (at == back.size() || back[at] != from) return false;
    }
  return true;
}

Graph union_of(std::span<const Graph> graphs) {
  GOSSAMER_CHECK(!graphs.empty(), "a union of no graphs has no peers");
  Graph result = graphs.front();
  if (graphs.size() == 1) return result;
  for (std::size_t i = 0; i < result.out.size(); ++i) {
    auto& all = result.out[i];
    for (const Graph& graph : graphs.subspan(1)) {
      GOSSAMER_CHECK(graph.peers() == result.peers(), "a union is of graphs on the same peers");
      all.insert(all.end(), graph.out[i].begin(), graph.out[i].end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  return result;
}

// A graph is strongly connected if peer 0 reaches every peer and every peer reaches peer 0.
std::optional<Unreachable> find_unreachable(const Graph& graph) {
  const auto first_missing = [](const std::vector<int>& hops) {
    return static_cast<int>(std::find(hops.begin(), hops.end(), kNotReached) - hops.begin());
  };
  if (graph.peers() == 0) return std::nullopt;
  if (const int to = first_missing(hops_from(graph, 0)); to < graph.peers())
    return Unreachable{0, to};
  if (is_symmetric(graph)) return std::nullopt;
  if (const int from = first_missing(hops_from(reversed(graph), 0)); from < graph.peers())
    return Unreachable{from, 0};
  return std::nullopt;
}

std::optional<Diameter> diameter(const Graph& graph, bool alike, double most_steps) {
  if (graph.peers() == 0) return std::nullopt;
  if (alike) {  // and if one reaches all, so do all
    const std::vector<int> hops = hops_from(graph, 0);
    if (std::ranges::find(hops, kNotReached) != hops.end()) return std::nullopt;
    return Diameter{farthest(hops).hops, true};
  }
  if (find_unreachable(graph)) return std::nullopt;
  const double looks = most_steps / static_cast<double>(count_edges(graph) + graph.peers());
  if (is_symmetric(graph)) return symmetric_diameter(graph, looks);
  Diameter longest;
  for (int source = 0; source < graph.peers() && longest.exact; ++source) {
    longest.hops = std::max(longest.hops, farthest(hops_from(graph, source)).hops);
    longest.exact = source + 1 == graph.peers() || source + 1 < looks;
  }
  return longest;
}

std::vector<std::vector<Edge>> matchings_of(const Graph& graph) {
  return EdgeColouring(graph).matchings();
}

std::int64_t count_edges(const Graph& graph) {
  std::int64_t edges = 0;
  for (const auto& out : graph.out) edges += static_cast<std::int64_t>(out.size());
  return edges;
}

}  // namespace gossamer::topology
