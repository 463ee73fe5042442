// The links of a run as its page knows them: which are lost or suspected, now and in earlier
// rounds, and what they have carried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "peer/storage/json.hpp"
#include "peer/watch/figures.hpp"

namespace gossamer::peer {

/// Each change is marked with a version of the view. Thread: one at a time.
class LinkHistory {
 public:
  /// How many changes are kept for rounds that are shown again: the first ones.
  static constexpr std::size_t kMostChanges = 65536;
  using Link = std::pair<int, int>;

  /// Which links the run has: the neighbours of each peer, in both directions; empty if edges are
  /// not known.
  void set_edges(std::vector<std::vector<int>> neighbours) { neighbours_ = std::move(neighbours); }
  bool knows_edges() const { return !neighbours_.empty(); }
  /// None if edges are not known.
  const std::vector<int>& neighbours(int peer) const;
  bool is_neighbour(int peer, int other) const;
  /// Whether the graph has a link, as far as its edges are known.
  bool may_be_edge(const Link& link) const {
    return !knows_edges() || is_neighbour(link.first, link.second);
  }

  /// In round `round`, `from` lost its link to `to`, or the link took effect again.
  void add_change(std::uint64_t round, int from, int to, bool lost) {
    if (changes_.size() < kMostChanges) changes_.push_back({round, from, to, lost});
  }
  /// `from` has lost its link to `to` now, or the link is restored.
  void set_lost(int from, int to, bool lost, const std::string& cause, std::uint64_t version);
  /// One end suspects the other, unless the link is lost.
  void set_suspected(int a, int b, bool suspected, std::uint64_t version);
  /// Which way the connection goes; `relay`: of LinkFigures.
  void set_route(int a, int b, const std::string& route, int relay, std::uint64_t version);
  /// Bytes that `peer` has sent to its neighbours so far (LinkTraffic::sent_by). The list may come
  /// from another process, and be anything.
  void set_sent(int peer, const Json& sent, std::uint64_t version);

  /// Whether `from` has lost its link to `to`.
  bool has_lost(int from, int to) const { return lost_.contains({from, to}); }
  bool any_lost() const { return !lost_.empty(); }
  /// The links of the graph that were lost in a round, as (lower, higher) end, ascending.
  std::vector<Link> lost_in(std::uint64_t round) const;
  /// By (lower, higher) end, of each link that had any news.
  const std::map<Link, LinkFigures>& figures() const { return figures_; }

 private:
  struct Change {
    std::uint64_t round = 0;
    int from = 0, to = 0;
    bool lost = false;
  };

  std::vector<std::vector<int>> neighbours_;
  std::map<Link, LinkFigures> figures_;
  std::set<Link> lost_;          ///< (the peer that lost the link, the other end)
  std::vector<Change> changes_;  ///< those of one end are in order
};

}  // namespace gossamer::peer
