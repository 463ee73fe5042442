// A trace, indexed for the oracle's checks: which link each incarnation had when, what its rounds
// mixed, and whose rows they used.
//
// An incarnation is named by its index in the trace (a, b), a peer by its id (i, j). The first
// incarnations of peers have their ids.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/oracle/reference.hpp"
#include "simulator/world/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

class Checks;

inline constexpr Round kNever = std::numeric_limits<Round>::max();

/// What a peer used of another peer's row in a mix.
struct UsedRow {
  Round round = 0;
  std::size_t values = 0;
  int incarnation = -1;  ///< whose row it was; -1: there never was a link to that peer
};

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

/// Under sync and deadline both ends of an edge know whether it counts.
inline bool is_synchronous(Policy policy) {
  return policy == Policy::sync || policy == Policy::deadline;
}

class TraceIndex {
 public:
  /// By incarnation and the other end's peer: the periods of their link, in the order of time.
  using Links = std::map<std::pair<int, int>, std::vector<LinkPeriod>>;
  /// By incarnation, round and channel.
  using Mixes = std::map<std::tuple<int, Round, Channel>, ReferenceMix>;
  /// By incarnation, round, channel and the other peer.
  using UsedRows = std::map<std::tuple<int, Round, Channel, int>, UsedRow>;

  /// Reports a log that cannot be indexed (`log`), and rounds that are not the algorithm's
  /// (`replay`). All references outlive the index.
  TraceIndex(const Scenario& scenario, const Protocol& protocol, const Trace& trace,
             Checks& checks);

  const Scenario& scenario;
  const Protocol& protocol;
  const Trace& trace;

  int peers() const { return scenario.peers; }
  Round rounds() const { return static_cast<Round>(scenario.rounds); }
  const Incarnation& incarnation(int a) const {
    return trace.incarnations[static_cast<std::size_t>(a)];
  }
  int incarnations() const { return static_cast<int>(trace.incarnations.size()); }
  int peer_of(int a) const { return incarnation(a).peer; }
  /// Null where the incarnation did not begin the round.
  const RoundRecord* record(int a, Round t) const;
  /// Whether it ended the round.
  bool completed(int a, Round t) const {
    return record(a, t) != nullptr && !record(a, t)->end.empty();
  }
  /// The first round in whose course a link of the incarnation was lost or restored.
  Round first_change(int a) const;
  /// The round that the incarnation was in at a time.
  Round round_at(int a, Time when) const;

  // ---- W and the rows
  const topology::MixingMatrix& w(Round t) const;
  bool is_static() const { return protocol.schedule->period() == 1; }
  /// Whether every W of the period is symmetric.
  bool symmetric() const { return symmetric_; }
  /// Values of a row on a channel.
  std::size_t width(Channel channel) const {
    return protocol.rows[channel].length(static_cast<std::size_t>(scenario.length));
  }
  /// The channel on which rows are shared and not mixed, of asynchronous push-sum.
  std::optional<Channel> shared() const;
  /// Whether the row goes to neighbours in every round.
  bool travels(Channel channel) const {
    return protocol.rows[channel].mixed || shared() == channel;
  }

  // ---- links
  const Links& links() const { return links_; }
  bool any_restored() const { return any_restored_; }
  /// The period of the link from `a` to peer `j` to which round t belongs: the last one that began
  /// before it; null where there is none.
  const LinkPeriod* link_at(int a, int j, Round t) const;
  /// The same connection as its other end had it.
  const LinkPeriod* other_end(int a, const LinkPeriod& link) const;
  /// The link between two incarnations at the end, as `a` has it; null where either end lost it.
  const LinkPeriod* final_link(int a, int b) const;

  // ---- mixes
  const Mixes& mixes() const { return mixes_; }
  const ReferenceMix* mix(int a, Round t, Channel channel) const;
  const UsedRows& used() const { return used_; }
  const UsedRow& used(int a, Round t, Channel channel, int j) const {
    return used_.at({a, t, channel, j});
  }
  /// Null where the peer is no in-neighbour of that round.
  const UsedRow* find_used(int a, Round t, Channel channel, int j) const;

 private:
  void index_links();
  void index_rounds(Checks& checks);
  void index_used(int a, const RoundRecord& record, Channel channel, Checks& checks);
  void index_entries();
  Row decoded(const Row& in, int peer, Round t) const;

  bool symmetric_ = true, any_restored_ = false;
  mutable std::map<Round, std::shared_ptr<const topology::MixingMatrix>> matrices_;
  Links links_;
  std::map<int, Round> first_change_;  ///< by incarnation
  std::map<std::pair<int, Round>, const RoundRecord*> records_;
  Mixes mixes_;
  UsedRows used_;
};

}  // namespace gossamer::simulator
