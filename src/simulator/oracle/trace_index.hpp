// A trace, indexed for the oracle's checks: which link each incarnation had when, what its rounds
// mixed, and whose rows they used.
//
// An incarnation is named by its index in the trace (a, b), a peer by its id (i, j). The first
// incarnations of peers have their ids.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/oracle/link_history.hpp"
#include "simulator/oracle/reference.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

class Checks;

/// What a peer used of another peer's row in a mix.
struct UsedRow {
  Round round = 0;
  std::size_t values = 0;
  int incarnation = -1;  ///< whose row it was; -1: there never was a link to that peer
};

/// Under sync and deadline both ends of an edge know whether it counts.
inline bool is_synchronous(Policy policy) {
  return policy == Policy::sync || policy == Policy::deadline;
}

class TraceIndex {
 public:
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
  /// The round that the incarnation was in at a time.
  Round round_at(int a, Time when) const;

  // ---- W and the rows
  /// The W_t that the incarnation knows: in an open run peers that are apart may know different
  /// participants. Of a round that it did not begin, that of the protocol.
  const topology::MixingMatrix& w(int a, Round t) const;
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

  const LinkHistory& links() const { return links_; }

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
  void index_rounds(Checks& checks);
  void index_used(int a, const RoundRecord& record, Channel channel, Checks& checks);
  void index_entries();
  Row decoded(const Row& in, int peer, Round t) const;

  bool symmetric_ = true;
  /// By round, and the participants of an open run.
  using MatrixKey = std::pair<Round, std::vector<int>>;
  mutable std::map<MatrixKey, std::shared_ptr<const topology::MixingMatrix>> matrices_;
  LinkHistory links_;
  std::map<std::pair<int, Round>, const RoundRecord*> records_;
  Mixes mixes_;
  UsedRows used_;
};

}  // namespace gossamer::simulator
