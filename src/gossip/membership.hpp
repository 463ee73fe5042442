// Who is still there, as one peer knows it: which links were lost, told from neighbour to neighbour, and what follows from it.
//
// Nobody decides for others. A peer that loses a link goes on without it, and so does the other end, if it lives: mixing by
// differences then leaves the rest of W symmetric and doubly stochastic. That the link is lost is told to all, each peer
// passing on what it hears for the first time. From the links that are left follows who is out of reach.
//
// Rows whose sum over the peers is conserved lose it with a link: they begin again, at the same round everywhere. A loss in
// round t has come to every peer that can be reached by round t + n, because news travels before the rows of a round, so that
// is the round.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gossip/exchange.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class Membership {
 public:
  struct Plan {
    std::vector<std::vector<int>> partners;  ///< by peer, ascending: the links of the whole network
    /// Lines for people: what changed, as this peer knows it.
    std::function<void(const std::string&)> message = [](const std::string&) {};
  };

  /// The endpoint outlives it.
  Membership(Exchange& exchange, Endpoint& endpoint, Plan plan);

  /// This peer's link to `peer` is lost; `why` is a whole sentence.
  void lost(int peer, const std::string& why);
  /// News from a partner: Note::link_lost.
  Status heard(const ChunkHead& head);
  /// Whether rows with a conserved sum begin again between this peer's last call and round t.
  bool restarts(Round t);
  /// Peers that links lead to, this one among them, ascending.
  std::vector<int> reachable() const;

 private:
  using LinkEnds = std::pair<int, int>;  ///< ascending

  void take(LinkEnds ends, Round t, int from);

  Exchange& exchange_;
  Endpoint& endpoint_;
  Plan plan_;
  std::set<LinkEnds> lost_;
  std::set<std::pair<LinkEnds, Round>> news_;  ///< that have come: both ends of a link tell of its loss, each in its round
  std::set<Round> restarts_;
  std::size_t reachable_;
};

}  // namespace gossamer::gossip
