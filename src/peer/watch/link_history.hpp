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

#include "peer/watch/figures.hpp"

namespace gossamer::peer {

/// Each change is marked with a version of the view. Thread: one at a time.
class LinkHistory {
 public:
  /// How many changes are kept for rounds that are shown again: the first ones.
  static constexpr std::size_t kMostChanges = 65536;
  using Link = std::pair<int, int>;

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
  /// Bytes that `from` has sent to `to` so far.
  void set_sent(int from, int to, std::uint64_t bytes, std::uint64_t version);

  /// Whether `from` has lost its link to `to`.
  bool has_lost(int from, int to) const { return lost_.contains({from, to}); }
  bool any_lost() const { return !lost_.empty(); }
  /// The links that were lost in a round, as (lower, higher) end, ascending.
  std::vector<Link> lost_in(std::uint64_t round) const;
  /// By (lower, higher) end, of each link that had any news.
  const std::map<Link, LinkFigures>& figures() const { return figures_; }

 private:
  struct Change {
    std::uint64_t round = 0;
    int from = 0, to = 0;
    bool lost = false;
  };

  std::map<Link, LinkFigures> figures_;
  std::set<Link> lost_;          ///< (the peer that lost the link, the other end)
  std::vector<Change> changes_;  ///< those of one end are in order
};

}  // namespace gossamer::peer
