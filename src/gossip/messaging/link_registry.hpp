// The links out of a process's peers, by sender and receiver.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "gossip/links/link.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class LinkRegistry {
 public:
  /// `hosted`: the peers of this process. Outlives the registry.
  explicit LinkRegistry(const std::set<int>& hosted) : hosted_(hosted) {}

  /// Chunks from → to go over `link`, which outlives its use. Every pair that an algorithm uses is
  /// connected before its first round, unless connect_hosted() makes the link.
  void connect(int from, int to, Link& link) { links_[{from, to}] = &link; }
  /// Links between hosted peers are made at their first use: on a random graph any two peers may
  /// become neighbours, and few do.
  void connect_hosted(std::function<Link&(int from, int to)> make) { make_ = std::move(make); }

  Link& link(int from, int to) {
    const auto found = links_.find({from, to});
    if (found != links_.end()) return *found->second;
    GOSSAMER_CHECK(make_ && hosted_.contains(to),
                   "an algorithm sends to a peer that partners() does not name");
    Link& made = make_(from, to);
    connect(from, to, made);
    return made;
  }

 private:
  const std::set<int>& hosted_;
  std::map<std::pair<int, int>, Link*> links_;
  std::function<Link&(int from, int to)> make_;
};

}  // namespace gossamer::gossip
