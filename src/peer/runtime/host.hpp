// The peers of one process: their memory, their nodes, and the coroutine that takes each from round
// to round. A run (peer/runtime/run.cpp) and a networked peer (peer/runtime/network_run.cpp) differ
// in the scheduler, the links and the executor they give.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gossip/compute.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/membership/membership.hpp"
#include "gossip/node.hpp"
#include "gpu/device_rows.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/checkpoint/checkpointer.hpp"
#include "peer/log/recorder.hpp"
#include "peer/runtime/setup.hpp"
#include "topology/recent_rounds.hpp"

namespace gossamer::peer {

struct HostRequest {
  std::vector<int> hosted;  ///< nodes of this process, ascending
  std::size_t row_offset =
      0;  ///< values by which rows are misaligned, for the test that it changes nothing
  /// What links between hosted nodes have; as it is, nothing holds chunks up.
  std::function<gossip::LinkModel(int from, int to)> local_links = [](int, int) {
    return gossip::LinkModel();
  };
  gossip::NodeModel ports;  ///< of hosted nodes, for those links
  /// Asked after each round of each peer; true ends the run after the round that is under way.
  std::function<bool()> interrupted = [] { return false; };
  /// Bytes of a hosted node's links to other processes.
  std::function<gossip::Traffic(int peer)> remote_traffic = [](int) { return gossip::Traffic(); };
  /// Writes this process's checkpoints; null: nobody does. Outlives the host.
  Checkpointer* checkpointer = nullptr;
  /// Lines for people.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// Of a process that joins: called once, when the first of its nodes knows the round in which it
  /// begins.
  std::function<Status(gossip::Round first)> on_arrival = [](gossip::Round) { return Status(); };
  /// Called once, when every hosted node has done its last round.
  std::function<void()> on_finished = [] {};
};

/// Thread: the scheduler's.
class Host {
 public:
  /// All references outlive the host. Throws std::bad_alloc when memory is short (check_memory
  /// tells before).
  Host(const Setup& setup, gossip::Scheduler& scheduler, gossip::Executor& executor,
       Recorder& recorder, HostRequest request);
  ~Host();

  /// For links to peers of other processes.
  gossip::Exchange& exchange() { return exchange_; }
  /// The GPU index of a hosted node's rows (Memory::gpu_of); 0 for others.
  int gpu_of(int node) const;
  /// Puts the nodes where they were. Before start(), from any one thread. Errors (data) name the
  /// file.
  Status restore(const SavedStates& saved);
  /// Starts every node at round 0, or where restore() put it: in virtual time when it was there,
  /// else at once. Then run the scheduler.
  enum class Clock { virtual_time, real_time };
  void start(Clock clock);
  /// Before restore(), of a process of a network: the round in which it is going to start(), where
  /// links may be lost and come back from now on. `joiners`: links to peers elsewhere that do not
  /// begin there, (hosted, elsewhere), of a run that bears losses; they are lost until they are
  /// back().
  void begin_at(gossip::Round round, const std::vector<std::pair<int, int>>& joiners);
  /// In place of start(), of a run that bears losses: every node begins where the network is, with
  /// the rows of a neighbour, as soon as one of its links is there. `connected` are those to other
  /// processes that are; the others come back().
  void join(const std::vector<std::pair<int, int>>& connected);
  /// The link from a hosted peer to one elsewhere is lost, and the run goes on without it: of a run
  /// that bears losses.
  void lose(int here, int there, const Error& why);
  /// It is there again.
  void back(int here, int there);
  /// The peer elsewhere has done its last round and takes its leave.
  void left(int here, int there);
  /// Ends the run: the first reason counts. The scheduler stops; nothing of the nodes runs any
  /// more.
  void fail(Error error);
  /// The error, and what usually helps, where a run diverged.
  Error with_advice(Error error) const;

  const std::optional<Error>& error() const { return error_; }
  bool was_interrupted() const { return stop_after_.has_value(); }
  /// The round at which the nodes started.
  gossip::Round first_round() const { return first_round_; }
  /// Rounds that every hosted node has completed.
  gossip::Round rounds_done() const;
  /// The run as it stands; `stopped`: why it ended early, if it did.
  EndMetrics end_metrics(double wall_seconds, const std::optional<Error>& stopped) const;
  /// Parameters as they stand of the hosted nodes that hold a model, in their order, in device
  /// memory.
  RowViews parameter_rows();

 private:
  struct Member {
    gossip::Node* node = nullptr;
    std::unique_ptr<gossip::Membership> membership;  ///< where losses are borne
    gossip::task<void> driver;
    gossip::Round round = 0;  ///< completed
    NodeMetrics before;  ///< what the log counts; time, traffic and times are counted elsewhere
    bool in_round = false;
    std::optional<gossip::Time> alone_since,
        helpless_since;  ///< of one that joins: no partner is there; none can give it rows
    bool begins_again =
        false;  ///< rows that account for what was under way, which is in no checkpoint
  };

  void set_initial_rows();
  gossip::NodeMemory memory_of(std::size_t index);
  gossip::Link& make_link(int from, int to);
  void watch_members();
  void log_change(int here, const gossip::Membership::Change& change);
  /// All but the time.
  void log_membership(MembershipMetrics figures);
  gossip::Membership& membership(int node);
  void look_for_givers(Member& member);
  gossip::task<void> await_admission(Member& member);
  gossip::task<void> drive(Member& member);
  gossip::task<void> record(Member& member);
  gossip::task<void> save(Member& member);
  NodeSnapshot snapshot(Member& member);
  Status restore(Member& member, const SavedStates::Node& saved);
  /// What the log counts of the node, up to now; what is since the last record stays.
  NodeMetrics metrics_of(Member& member);
  void check_interrupt();
  gossip::Traffic traffic_of(int peer) const;
  std::uint64_t node_steps() const;
  /// Bytes of all hosted nodes' links, local and remote.
  std::uint64_t bytes_sent() const;

  const Setup& setup_;
  gossip::Scheduler& scheduler_;
  gossip::Executor& executor_;
  Recorder& recorder_;
  HostRequest request_;
  std::vector<gossip::RowSpec> specs_;
  std::vector<gpu::DeviceRows<float>> fronts_,
      backs_;  ///< by row of the algorithm: one row per hosted node
  gpu::DeviceRows<float> gradients_;
  std::vector<gpu::DeviceRows<float>> states_;  // of the optimizer
  gossip::Compute compute_;
  std::map<int, gossip::SimulatedPort> ports_;  ///< by hosted node
  topology::RecentRounds rounds_;
  std::vector<std::unique_ptr<gossip::Node>>
      nodes_;  ///< outlive what has leases on their rows: exchange, links, drivers
  gossip::Exchange exchange_;
  std::vector<std::unique_ptr<gossip::SimulatedLink>> links_;
  std::vector<Member> members_;
  std::size_t finished_ = 0;
  std::optional<gossip::Round> stop_after_;
  gossip::Round first_round_ = 0;
  bool arrived_ = false;                  ///< of a process that joins
  bool started_ = false;                  ///< or joins
  std::vector<MembershipMetrics> early_;  ///< of what was lost and came back before
  gossip::Time clock_begin_{0};           ///< of the log, when the scheduler's is 0
  double wall_seconds_before_ = 0;        ///< of the run, until it was begun again here
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<Error> error_;
};

}  // namespace gossamer::peer
