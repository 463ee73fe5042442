// At which round the processes of a network begin: the newest that every one of them has the states
// of. Where there is none, and the run can do without some for a while, the round that most peers
// have, and the others join those. Each process knows its own rounds; who has which spreads from
// partner to partner (net/network.hpp, confer), and after as many exchanges as the network is wide
// all come to the same answer.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gossip/links/link.hpp"
#include "peer/runtime/setup.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// What one process knows. Pure.
class Agreement {
 public:
  /// `hosted`: the process's nodes, of `nodes` in all. `rounds`: those that it can begin at,
  /// ascending, one at least.
  Agreement(const std::vector<int>& hosted, int nodes, const std::vector<gossip::Round>& rounds);
  /// Of how many rounds a statement has room, 3 at least, and of 8 nodes 1,900: of all that anybody
  /// has, the newest count.
  static std::size_t most_rounds(int nodes);

  std::string say() const;
  /// What a partner said; an error says how it makes no sense.
  Status hear(const std::string& statement);

  struct Outcome {
    gossip::Round round = 0;
    std::vector<int> without;  ///< nodes that do not have it, ascending
  };
  /// When all have been heard of. `some_may_join`: those who do not have a round may take others'
  /// rows. Error (invalid) where they may not, or somebody's rounds did not find room, and there is
  /// none that all have: two peers between which there is none are named.
  Result<Outcome> outcome(bool some_may_join) const;

 private:
  using Nodes = std::vector<bool>;

  void trim();
  std::vector<gossip::Round> rounds_of(std::size_t node) const;

  std::size_t nodes_;
  int own_;  ///< one of this process's nodes
  std::set<gossip::Round> own_rounds_;
  std::map<gossip::Round, Nodes> owners_;  ///< who has the states of a round
};

/// Exchanges after which every process of the network has heard of every other: twice the way from
/// node 0 to the farthest.
int exchanges_to_reach_all(const Setup& setup);

/// By how many rounds one node may be ahead of another in a network; nothing where there is no
/// bound.
std::optional<std::uint64_t> largest_lead(const Setup& setup);

/// Why the processes of a network might find no round that all have a checkpoint of, in a sentence;
/// empty where they will.
std::string agreement_warning(const Setup& setup);

}  // namespace gossamer::peer
