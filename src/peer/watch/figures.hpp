// The figures of a run that its page shows (peer/watch/run_view.hpp). NaN: not known.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "net/io/timer_delays.hpp"
#include "net/startup/refused_connections.hpp"

namespace gossamer::peer {

inline constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

enum class NodeStatus {
  unknown,  ///< there is no record of it yet
  absent,   ///< takes no part in the newest round
  training,
  joined,    ///< trains, after it joined the running network
  lost,      ///< every neighbour that trains has lost its link to the node
  finished,  ///< its process has finished the run
  stopped,   ///< its process has ended for another reason
};

/// What a node has counted up to a record.
struct NodeTotals {
  std::uint64_t round = 0;
  double seconds = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  double train_seconds = 0, wait_seconds = 0, mix_seconds = 0;
};

/// The newest figures of a node.
struct NodeFigures : NodeTotals {
  std::uint64_t changed = 0;  ///< version of the view (RunView) at the last change, as below
  bool begun = false;         ///< the header of its process's log was added
  int clock = 0;              ///< of EventHistory: that of its process
  bool recorded = false;      ///< it has a record; before it, only `state` means anything
  /// As of its first record here, or its first one since its process was started again and counted
  /// from 0: what it does in a round is a difference to this.
  NodeTotals first = {};
  double train_loss = kNotKnown, test_loss = kNotKnown, test_accuracy = kNotKnown;
  double distance = kNotKnown;       ///< of its parameters from the mean over the honest peers …
  std::uint64_t distance_round = 0;  ///< … in the newest round of which it is known
  NodeStatus state = NodeStatus::unknown;
  bool trains() const { return state == NodeStatus::training || state == NodeStatus::joined; }
};

/// Mean, least and largest of the values that are finite.
struct Spread {
  double sum = 0, least = kNotKnown, largest = kNotKnown;
  int count = 0;
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum += value, ++count;
    if (!(least <= value)) least = value;
    if (!(largest >= value)) largest = value;
  }
  double mean() const { return count == 0 ? kNotKnown : sum / count; }
};

/// The figures of one logged round.
struct RoundFigures {
  std::uint64_t changed = 0;
  std::uint64_t round = 0;
  int nodes = 0;       ///< honest peers that have recorded the round
  int due = 0;         ///< honest peers that take part in it, of those whose records the view has
  double seconds = 0;  ///< the largest of the peers'
  std::uint64_t bytes_sent = 0;  ///< by all nodes since the start, as of their records up to here
  Spread train_loss, test_loss, test_accuracy;  ///< of the honest peers
  double consensus_distance = kNotKnown, averaged_loss = kNotKnown, averaged_accuracy = kNotKnown;
  double distance_to_optimum = kNotKnown;
};

/// The figures of each peer in one round, by peer.
struct PeerFigures {
  std::vector<float> train_loss, test_loss, test_accuracy, distance;
};

/// A round that is shown again.
struct ReplayedRound {
  PeerFigures peers;
  std::vector<std::pair<int, int>> lost_links;  ///< (lower, higher) end, ascending
};

struct LinkFigures {
  std::uint64_t changed = 0;
  bool lost = false;
  bool suspected = false;        ///< not lost: one end has heard nothing from the other for a while
  std::string cause;             ///< of the loss
  std::string route = "direct";  ///< or "reversed", or "relayed"
  int relay = -1;                ///< if relayed: the peer whose process relays it
  std::uint64_t sent_by_lower = 0, sent_by_higher = 0;  ///< bytes, as far as they are known
};

/// What a process has counted of itself since its start, for those that operate it.
struct ProcessFigures {
  net::RefusedConnections refused;
  net::TimerDelays timer_delays;
};

struct EventLine {
  std::uint64_t changed = 0;
  int clock = 0;       ///< of EventHistory, that of …
  double seconds = 0;  ///< … since the start of the peer's process
  std::uint64_t round = 0;
  int peer = 0;
  std::string event;  ///< that of a membership record, or "ended"
  std::string text;   ///< a sentence
};

}  // namespace gossamer::peer
