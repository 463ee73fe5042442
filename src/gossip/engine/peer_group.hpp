// The peers of one process: their rows, the exchange that they share, and an engine for each.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gossip/compute.hpp"
#include "gossip/engine/peer_engine.hpp"
#include "gossip/engine/peer_memory.hpp"
#include "gossip/exchange/exchange.hpp"

namespace gossamer::gossip {

/// What a group is made of. What it refers to outlives the group.
struct GroupRequest {
  Scheduler& scheduler;
  Compute& compute;
  gpu::Memory& memory;
  const topology::MixingSchedule& schedule;
  const Algorithm& algorithm;
  /// The choices of the run; the group sets channels and gpu_of.
  ExchangeOptions exchange = {};
  std::vector<int> hosted = {};  ///< ids of the process's nodes, ascending
  EngineOptions engine = {};
  MemoryLayout layout = {};
  PeerMemory::Initialise initialise = {};
};

/// Thread: the scheduler's.
class PeerGroup {
 public:
  /// `hooks` are those of every engine. `on_fault` is Exchange's. Throws std::bad_alloc when the
  /// device has too little memory.
  PeerGroup(GroupRequest request, EngineHooks& hooks, Exchange::OnFault on_fault);
  ~PeerGroup();

  Exchange& exchange() { return exchange_; }
  const std::vector<int>& hosted() const { return hosted_; }
  bool hosts(int node) const;
  /// In the order of hosted().
  const std::vector<std::unique_ptr<PeerEngine>>& engines() const { return engines_; }
  PeerEngine& engine(int node) { return *engines_[index_of(node)]; }
  /// The GPU index of a hosted node's rows (Memory::gpu_of); 0 for other nodes.
  int gpu_of(int node) const;

  // ---- before start
  using MakeLink = std::function<std::unique_ptr<Link>(int from, int to)>;
  /// Links between two hosted nodes are made by `make` when they are first used.
  void connect_hosted(MakeLink make);
  /// Membership of every hosted node. `plan` gives the messages and changes of node `node`.
  void tolerate_loss(const std::function<Membership::Options(int node)>& plan);
  /// Every hosted node joins (PeerEngine::join). Of its links there are those to other hosted
  /// nodes, and `connected`: pairs of a hosted node and a node of another process.
  void join(const std::vector<std::pair<int, int>>& connected);

  /// Makes the link between two hosted nodes anew (FaultReporter::reset_link). Not from within a
  /// call of theirs.
  void reset_link(int a, int b, const std::string& why);

  /// The rounds that have begun are completed, at all nodes those that any of them has begun, for
  /// the others still need its messages; then the loops end. Only the first call counts.
  void interrupt();
  /// The number of rounds after which an interrupt ends the run.
  std::optional<Round> stops_after() const { return stop_after_; }
  /// Whether every hosted node has finished.
  bool finished() const;
  /// Rounds that every hosted node has completed.
  Round rounds_done() const;
  /// The most rounds that a peer left out, because it was cut off and went on in the round of a
  /// neighbour, or by catching up (Participation::rounds_left_out).
  Round rounds_left_out() const;

 private:
  std::size_t index_of(int node) const;

  const Algorithm& algorithm_;
  std::vector<int> hosted_;
  PeerMemory memory_;
  // The rows of the engines' nodes outlive what may hold leases on them: exchange and links.
  std::vector<std::unique_ptr<PeerEngine>> engines_;
  Exchange exchange_;
  Donors donors_;
  std::vector<std::unique_ptr<Link>> links_;
  std::optional<Round> stop_after_;
};

/// For Membership::Options: the partners of every node of the run.
std::shared_ptr<const std::vector<std::vector<int>>> partners_of_all(
    const Algorithm& algorithm, const topology::MixingSchedule& schedule, int nodes);

}  // namespace gossamer::gossip
