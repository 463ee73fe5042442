// The nodes of one process of the program: their engines, with the process's log, checkpoints and
// interrupts. A run (peer/runtime/run.cpp) and a networked peer (peer/runtime/network_run.cpp)
// differ in the scheduler, the links and the executor that they give to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gossip/compute.hpp"
#include "gossip/engine/peer_group.hpp"
#include "gossip/links/simulated_link.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/checkpoint/checkpointer.hpp"
#include "peer/log/recorder.hpp"
#include "peer/runtime/host_log.hpp"
#include "peer/runtime/join_watch.hpp"
#include "peer/setup/setup.hpp"
#include "peer/watch/link_traffic.hpp"
#include "topology/participants/changing_schedule.hpp"
#include "topology/recent_rounds.hpp"

namespace gossamer::peer {

struct HostRequest {
  std::vector<int> hosted;     ///< nodes of this process, ascending
  std::size_t row_offset = 0;  ///< values by which rows are misaligned, for tests
  /// The model of the link between two hosted nodes. The default one delays nothing.
  std::function<gossip::LinkModel(int from, int to)> local_links = [](int, int) {
    return gossip::LinkModel();
  };
  /// What those links of a hosted node share.
  std::function<gossip::NodeModel(int node)> ports = [](int) { return gossip::NodeModel(); };
  gossip::StepTimes step_times = {};  ///< zero: steps take the time that they take
  LinkTraffic* traffic = nullptr;     ///< counts what passes those links; null: nothing does
  /// Asked after each round of each node; true ends the run after the round that is under way.
  std::function<bool()> interrupted = [] { return false; };
  /// Bytes of a hosted node's links to other processes.
  HostLog::RemoteTraffic remote_traffic = [](int) { return gossip::ByteCounters(); };
  /// Writes this process's checkpoints; null: none are written. Outlives the host.
  Checkpointer* checkpointer = nullptr;
  /// Lines for people.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// Of a process that joins: called once, when the first of its nodes knows its first round.
  std::function<Status(gossip::Round first)> on_arrival = [](gossip::Round) { return Status(); };
  /// Called once, when every hosted node has done its last round.
  std::function<void()> on_finished = [] {};
};

/// Thread: the scheduler's.
class Host final : private gossip::EngineHooks {
 public:
  /// All references outlive the host. Throws std::bad_alloc when memory is short (check_memory
  /// reports that beforehand).
  Host(const Setup& setup, gossip::Scheduler& scheduler, gossip::Executor& executor,
       Recorder& recorder, HostRequest request);

  /// The hosted nodes: their exchange, and their links to nodes of other processes.
  gossip::PeerGroup& group() { return group_; }
  HostLog& log() { return log_; }
  /// (node, neighbour): the links that nodes of other processes have lost, as far as the hosted
  /// nodes know.
  std::set<std::pair<int, int>> links_lost_elsewhere() const;

  /// Puts the nodes back to a saved round, of which `saved` has the states of all hosted nodes that
  /// count. Before start(), from any one thread. Errors (data) name the file.
  Status restore(const SavedStates& saved);
  /// Starts every node at round 0, or where restore() put it: in virtual time when it was there,
  /// else at once. Then run the scheduler.
  enum class Clock { virtual_time, real_time };
  void start(Clock clock);
  /// Before restore(), of a process of a network: the round in which it is going to start(). Links
  /// may be lost and restored from now on. `joiners`: links to nodes elsewhere that do not begin
  /// there, (hosted, elsewhere), of a run that tolerates loss; they are lost until they are
  /// restored.
  void begin_at(gossip::Round round, const std::vector<std::pair<int, int>>& joiners);
  /// In place of start(), of a run that tolerates loss: every node begins where the network is,
  /// with the rows of a neighbour, as soon as one of its links is there. `connected`: the links to
  /// other processes that are there; the others are restored later.
  void join(const std::vector<std::pair<int, int>>& connected);
  /// Ends the run; the first error counts. The scheduler stops, and no node does anything further.
  void fail(Error error);

  const std::optional<Error>& error() const { return error_; }
  /// The round at which the nodes started.
  gossip::Round first_round() const { return first_round_; }
  /// The run as it stands; `stopped`: why it ended early, if it did.
  EndMetrics end_metrics(double wall_seconds, const std::optional<Error>& stopped) const;
  /// Parameters as they stand of the hosted nodes that hold a model, in their order, in device
  /// memory.
  RowViews parameter_rows();

 private:
  bool joined(gossip::PeerEngine& engine) override;
  void on_part(gossip::PeerEngine& engine, Part part) override;
  void before_round(gossip::PeerEngine& engine, bool reinitialised) override;
  bool after_round(gossip::PeerEngine& engine) override;
  gossip::task<void> save(gossip::PeerEngine& engine) override;
  gossip::task<void> completed(gossip::PeerEngine& engine) override;
  void finished(gossip::PeerEngine& engine) override;

  gossip::GroupRequest group_request();
  Status restore(gossip::PeerEngine& engine, gossip::Round round, const SavedStates::Node& saved);
  Status restore_workload(gossip::PeerEngine& engine, const SavedStates::Node& saved);
  NodeSnapshot snapshot(gossip::PeerEngine& engine);
  std::uint64_t node_steps() const;

  const Setup& setup_;
  gossip::Scheduler& scheduler_;
  gossip::Executor& executor_;
  HostRequest request_;
  HostLog log_;
  gossip::Compute compute_;
  std::unique_ptr<topology::ChangingSchedule> changing_;  ///< of an open run
  topology::RecentRounds rounds_;
  gossip::PeerGroup group_;
  std::vector<std::unique_ptr<JoinWatch>> watches_;
  gossip::Round first_round_ = 0;
  bool arrives_ = false;  ///< the process joins, and has no round yet
  std::optional<Error> error_;
};

}  // namespace gossamer::peer
