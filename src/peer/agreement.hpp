// At which round the processes of a network begin: the newest that every one of them has the states of. Each knows its own
// rounds; what all have in common spreads from partner to partner (net/network.hpp, confer), and after as many exchanges as the
// network is wide all come to the same answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gossip/link.hpp"
#include "peer/files.hpp"
#include "peer/setup.hpp"

namespace gossamer::peer {

/// What one process knows. Pure.
class Agreement {
 public:
  /// `peer`: the process's lowest node. `rounds`: those that it can begin at, ascending, one at least; the newest kMostRounds count.
  Agreement(int peer, std::vector<gossip::Round> rounds);
  static constexpr std::size_t kMostRounds = 24;  // what is told of them fits into a statement

  std::string say() const;
  /// What a partner said; an error says how it makes no sense.
  Status hear(const std::string& statement);
  /// The round, when all have been heard of. Error (invalid): there is none that all have; the peers and rounds between which
  /// there is none are named.
  Result<gossip::Round> outcome() const;

 private:
  struct Witness {
    int peer = 0;
    std::vector<gossip::Round> rounds;
  };
  static std::optional<Witness> witness_in(const Json& statement, const char* key);

  std::vector<gossip::Round> common_;  ///< ascending
  Witness behind_;                     ///< whose newest is the oldest
  Witness ahead_;                      ///< whose oldest is the newest
};

/// Exchanges after which every process of the network has heard of every other: twice the way from node 0 to the farthest.
int exchanges_to_reach_all(const Setup& setup);

/// By how many rounds one node may be ahead of another in a network; nothing where there is no bound.
std::optional<std::uint64_t> largest_lead(const Setup& setup);

/// Why the processes of a network might find no round that all have a checkpoint of, in a sentence; empty where they will.
std::string agreement_warning(const Setup& setup);

}  // namespace gossamer::peer
