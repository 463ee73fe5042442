// The links out of a process's peers, by sender and receiver.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/check.hpp"
#include "gossip/link.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class LinkRegistry {
 public:
  /// `hosted`: the peers of this process. Outlives the registry.
  explicit LinkRegistry(const std::set<int>& hosted) : hosted_(hosted) {}

  /// Chunks from → to go over `link`, which outlives its use. Every pair that an algorithm uses is
  /// connected before its first round, unless connect_hosted() makes the link.
  void connect(int from, int to, Link& link) {
    const auto sender = static_cast<std::size_t>(from);
    if (sender >= links_.size()) links_.resize(sender + 1);
    links_[sender][to] = &link;
  }
  /// Links between hosted peers are made at their first use: on a random graph any two peers may
  /// become neighbours, and few do.
  void connect_hosted(std::function<Link&(int from, int to)> make) { make_ = std::move(make); }

  /// The links out of `from` that there are, by receiver, ascending.
  const std::map<int, Link*>& links_of(int from) const {
    static const std::map<int, Link*> none;
    const auto sender = static_cast<std::size_t>(from);
    return sender < links_.size() ? links_[sender] : none;
  }

  Link& link(int from, int to) {
    if (const auto sender = static_cast<std::size_t>(from); sender < links_.size())
      if (const auto found = links_[sender].find(to); found != links_[sender].end())
        return *found->second;
    GOSSAMER_CHECK(make_ && hosted_.contains(to),
                   "an algorithm sends to a peer that partners() does not name");
    Link& made = make_(from, to);
    connect(from, to, made);
    return made;
  }

 private:
  const std::set<int>& hosted_;
  std::vector<std::map<int, Link*>> links_;  ///< by sender: every chunk looks its link up
  std::function<Link&(int from, int to)> make_;
};

}  // namespace gossamer::gossip
