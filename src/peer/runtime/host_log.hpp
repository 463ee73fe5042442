// What a process counts of its nodes for its log and its checkpoints: times, traffic, losses,
// staleness, and which peers are reachable.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "gossip/engine/peer_engine.hpp"
#include "gossip/links/simulated_link.hpp"
#include "peer/checkpoint/checkpoint.hpp"
#include "peer/log/recorder.hpp"
#include "peer/setup/setup.hpp"
#include "topology/participants/changing_schedule.hpp"

namespace gossamer::peer {

/// Thread: the scheduler's.
class HostLog {
 public:
  /// Bytes of a hosted node's links to other processes.
  using RemoteTraffic = std::function<gossip::ByteCounters(int node)>;
  using OnFault = std::function<void(Error)>;

  /// `hosted`: ids of the process's nodes. `ports`: what the links of a node
  /// between them share. `on_fault`
  /// is called with what ends the run: the log cannot be written (data), or a node diverged. All
  /// references outlive the log.
  HostLog(const Setup& setup, const gossip::Scheduler& scheduler, Recorder& recorder,
          const std::vector<int>& hosted, const std::function<gossip::NodeModel(int node)>& ports,
          RemoteTraffic remote_traffic, OnFault on_fault);

  /// A hosted node's end of its links to other hosted nodes.
  gossip::SimulatedPort& port(int node) { return ports_.at(node); }

  /// The node goes on from a checkpoint that counted `metrics`. Before start().
  void restore(int node, const NodeMetrics& metrics);
  /// Seconds of the run before it was resumed here.
  void set_earlier_wall_seconds(double seconds) { earlier_wall_seconds_ = seconds; }
  /// When the node had done its first round here, by the log's clock.
  gossip::Time time_of(int node) const { return counted_.at(node).time; }
  /// The scheduler's time 0 is `clock_begin` of the log's clock. Membership events that came before
  /// are written now.
  void start(gossip::Time clock_begin);
  /// The steps that the node has done by now are those of the donor of its rows.
  void skip_steps_of_donor(gossip::PeerEngine& engine);

  /// What the log counts of the node up to now. Its staleness is that since the last record.
  NodeMetrics metrics_of(gossip::PeerEngine& engine);
  double wall_seconds() const;
  /// Records the node after round() rounds, with its losses and its evaluation.
  gossip::task<void> record(gossip::PeerEngine& engine);
  /// Records what deviated from W since the last call. False: the log cannot be written.
  bool record_deviations(gossip::PeerEngine& engine);
  void record(int node, const gossip::Membership::Event& change);
  /// The connection to a neighbour in another process goes another way than before.
  void record_route(gossip::PeerEngine& engine, int neighbour, const net::Route& route);
  /// Of an open run, as a peer begins a round: records the participants if they are others than
  /// those of its last record, with the round from which on they take part; `first` at the
  /// earliest, the first round of the process.
  void record_participants(gossip::PeerEngine& engine, const topology::ChangingSchedule& schedule,
                           gossip::Round first);
  /// The participants of the next round are others than those of the last record.
  void forget_participants() { participants_.clear(); }
  /// Writes all but the time, which is now; before start(), once it is called.
  void record(MembershipMetrics metrics);

  /// Bytes of all hosted nodes' links, local and remote.
  std::uint64_t bytes_sent() const;
  double seconds() const;
  double seconds_with_earlier(double wall_seconds) const {
    return earlier_wall_seconds_ + wall_seconds;
  }

 private:
  gossip::ByteCounters traffic_of(int node) const;
  void check_finite(const RoundMetrics& metrics, bool evaluated, bool is_server);

  const Setup& setup_;
  const gossip::Scheduler& scheduler_;
  Recorder& recorder_;
  RemoteTraffic remote_traffic_;
  OnFault on_fault_;
  std::map<int, gossip::SimulatedPort> ports_;  ///< by hosted node
  std::map<int, NodeMetrics>
      counted_;                    ///< by hosted node; what is since then, the node counts itself
  std::vector<int> participants_;  ///< as the log of an open run has them
  bool started_ = false;           ///< events are written; until then they are kept
  std::vector<MembershipMetrics> early_;
  gossip::Time clock_begin_{0};
  double earlier_wall_seconds_ = 0;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

/// The error, and what usually helps where a run diverged.
Error with_advice(const Setup& setup, Error error);

}  // namespace gossamer::peer
