// The round at which the processes of a network start: the newest of which every process has the
// states. If there is none and the run tolerates that some processes are missing for a while, it is
// the round that most peers have, and the other processes join those peers. Each process knows its
// own rounds; the all-gather at the start (net/network.hpp) spreads this knowledge, and then every
// process computes the same answer.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gossip/link.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// What one process knows of the rounds of all processes. Pure.
class StartRoundAgreement {
 public:
  /// Whether a process can start at a round without a state, because none of its nodes counts after
  /// it (Setup::counts_after).
  using NeedsNoState = std::function<bool(gossip::Round)>;

  /// `hosted`: the nodes of this process, of `nodes` in all. `rounds`: the rounds at which it can
  /// start, ascending, at least one; beside those of other processes of which it needs no state.
  StartRoundAgreement(
      const std::vector<int>& hosted, int nodes, const std::vector<gossip::Round>& rounds,
      NeedsNoState needs_no_state = [](gossip::Round) { return false; });
  /// The number of rounds that fit into a contribution: at least 3, and 1,900 for 8 nodes. Only the
  /// newest of all rounds are kept.
  static std::size_t most_rounds(int nodes);

  /// What this process knows, as net::AllGather::contribution.
  std::string contribution() const;
  /// Adds what a partner knows. Error (lost_peer): a clause that says how the contribution makes no
  /// sense.
  Status merge(const std::string& contribution);

  struct Outcome {
    gossip::Round round = 0;
    std::vector<int> without;  ///< nodes that do not have the round, ascending
  };
  /// After the all-gather. `some_may_join`: nodes without the round may take the rows of others.
  /// Error (invalid): they may not, or the rounds of a node did not fit, and no round is common to
  /// all; the message names two nodes that share none.
  Result<Outcome> outcome(bool some_may_join) const;

 private:
  using Nodes = std::vector<bool>;

  void trim();
  std::vector<gossip::Round> rounds_of(std::size_t node) const;

  std::size_t nodes_;
  std::vector<int> hosted_;
  NeedsNoState needs_no_state_;
  std::set<gossip::Round> own_rounds_;
  std::map<gossip::Round, Nodes> owners_;  ///< the nodes that have the states of a round
};

/// Steps of an all-gather after which every process knows what every other knew: twice the distance
/// from the first participant to the farthest one; where participants change, twice as many, for
/// processes add themselves to rounds that they learn of.
int steps_to_reach_all(const Setup& setup);

/// The largest number of rounds by which one node of a network can be ahead of another; nothing if
/// there is no bound.
std::optional<std::uint64_t> largest_round_gap(const Setup& setup);

/// A sentence that says why the processes of a network may find no round of which all have a
/// checkpoint; empty if they will find one.
std::string agreement_warning(const Setup& setup);

}  // namespace gossamer::peer
