// Which link each incarnation had when, as its own process was notified. An incarnation is named by
// its index in the trace (a, b), a peer by its id (j).
#pragma once

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

inline constexpr Round kNever = std::numeric_limits<Round>::max();

/// A link as one of its ends had it, from its start or restoration to its loss.
struct LinkPeriod {
  int other = 0;       ///< the incarnation at the other end
  int connection = 0;  ///< LinkRecord::connection: both ends have the same
  bool from_start = false;
  bool used = false;   ///< this end mixed something of the other end's
  Round restored = 0;  ///< the round in which this end was notified: the link takes no part in it
  Round entered = kNever;  ///< the first round in which either end used the other's row
  Round lost = kNever;     ///< the round in which this end was notified of the loss
  Time restored_at{0}, lost_at{Time::max()};
  bool covers(Round t) const { return (from_start || restored < t) && t <= lost; }
};

class LinkHistory {
 public:
  /// By incarnation and the other end's peer: the periods of their link, in the order of time.
  using Periods = std::map<std::pair<int, int>, std::vector<LinkPeriod>>;

  /// The trace outlives the history.
  LinkHistory(const Scenario& scenario, const Protocol& protocol, const Trace& trace);

  const Periods& periods() const { return periods_; }
  bool any_restored() const { return any_restored_; }
  /// The first round in whose course a link of the incarnation was lost or restored.
  Round first_change(int a) const;
  /// The period of the link from `a` to peer `j` to which round t belongs: the last one that began
  /// before it; null where there is none.
  const LinkPeriod* at(int a, int j, Round t) const;
  /// The same connection as its other end had it.
  const LinkPeriod* other_end(int a, const LinkPeriod& link) const;
  /// The link between two incarnations at the end, as `a` has it; null where either end lost it.
  const LinkPeriod* at_the_end(int a, int b) const;

  /// `a` used a row of peer j in round t.
  void note_use(int a, int j, Round t);

 private:
  int peer_of(int a) const { return trace_.incarnations[static_cast<std::size_t>(a)].peer; }

  const Trace& trace_;
  Periods periods_;
  std::map<int, Round> first_change_;  ///< by incarnation
  bool any_restored_ = false;
};

}  // namespace gossamer::simulator
