// Everything that a run is made of, built from its configuration: topology and checked mixing
// matrices, algorithm, workload and device. All errors of a configuration are
// found here, before anything starts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/attack.hpp"
#include "gossip/links/network_model.hpp"
#include "gossip/rule.hpp"
#include "gpu/device.hpp"
#include "peer/config/config.hpp"
#include "peer/setup/device_choice.hpp"
#include "peer/setup/local_rank.hpp"
#include "peer/setup/workload.hpp"
#include "peer/storage/probe_tables.hpp"
#include "topology/mixing_matrix.hpp"
#include "topology/report.hpp"

namespace gossamer::peer {

/// What the peers of a process share. Immutable, except for the workload's state. The
/// device is declared before everything that owns device memory.
struct Setup {
  Config config;
  std::unique_ptr<topology::MixingSchedule> schedule;
  std::vector<topology::TopologyReport> reports;  ///< by change of participants
  std::unique_ptr<gossip::Algorithm> algorithm;
  std::unique_ptr<gossip::Codec> codec;
  gossip::MixingRule rule;
  gossip::AttackPlan attack;
  gossip::NetworkModel network;          ///< the links of the simulated network, from [sim]
  std::vector<ProbedNode> probed_nodes;  ///< its nodes, of sim.probe; else empty
  std::unique_ptr<gpu::Device> device;
  std::string device_note;  ///< a message to print about the choice of the device; usually empty
  std::shared_ptr<Workload> workload;
  std::size_t parameters = 0;  ///< values in a row, d
  std::optional<int> part;  ///< of a cut model, that this process holds of each replica; none: it
                            ///< holds whole replicas

  /// Of the participants of round 0.
  const topology::TopologyReport& report() const { return reports.front(); }
  bool trains() const { return workload->trainer() != nullptr; }
  /// Number of nodes that train: run.peers, or 1 with `centralized`.
  int workers() const { return algorithm->requirements().one_node ? 1 : config.run.peers; }
  /// Whether the run continues after a peer is lost.
  bool tolerates_peer_loss() const {
    return algorithm->requirements().tolerates_peer_loss && config.net.on_loss == "continue";
  }
  /// Number of servers. Their ids follow the ids of the workers.
  int servers() const { return algorithm->requirements().servers; }
  /// Number of nodes of the run, in all processes.
  int nodes() const { return workers() + servers(); }
  bool is_server(int node) const { return node >= workers(); }
  /// Whether the state of a node counts after `rounds` rounds: it took part in the last of them.
  bool counts_after(int node, gossip::Round rounds) const {
    const topology::Participants& participants = schedule->participants();
    return participants.is_open() || participants.counts_after(node, rounds);
  }
  /// Those of `nodes` of which it does, in their order.
  std::vector<int> counted(const std::vector<int>& nodes, gossip::Round rounds) const;
  /// The workers that took part in the last of `rounds` rounds, ascending; for 0 rounds, those that
  /// take part in the first.
  std::vector<int> counted_workers(gossip::Round rounds) const;
  /// Whether the node's row is a whole model, which is evaluated and saved. With several servers,
  /// each has only a part of the model.
  bool holds_model(int node) const { return !is_server(node) || servers() == 1; }
  /// Whether the node's row is a model of the network after `rounds` rounds, and not of an earlier
  /// round: metrics count it.
  bool is_current(int node, gossip::Round rounds) const {
    return is_server(node) || algorithm->holds_model(node, rounds, *schedule, config.run.seed);
  }
  /// Local steps of a peer in a round in which it takes part.
  std::uint64_t steps_per_round(int peer) const;
  /// Virtual time of a local step of a peer that is not slow, in milliseconds; 0 with sim.probe,
  /// whose nodes have their own. For full batches, all shards are taken to have the same size.
  double step_ms() const;
  /// Makes memory for the rows that will be allocated, in which other processes of this machine can
  /// read them. Null: net.shared_memory is off, the policy is not sync, or the device or the system
  /// has none. Under another policy a process would wait for a slower one until that has mixed.
  SharedMemory* share_rows() const;
  /// What the log reports of the topology of some participants (MixingSchedule::parts()).
  Result<topology::TopologyReport> examine(const topology::MixingSchedule& part) const;
  /// Hash of the names and shapes of the tensors. Peers with the same hash can exchange rows.
  std::string model_hash() const;
  /// Hash of the shared configuration and of the content of the data set. Reads all of the data.
  std::string configuration_hash() const;
  /// The same of the run whose models are not cut: a cut changes nothing in the state of whole
  /// replicas, unless their parts are encoded one by one; then it is that of this run.
  std::string uncut_configuration_hash() const;
};

/// The mixing matrices that a configuration asks for, given the needs of `algorithm`.
topology::ScheduleRequest schedule_request(const Config& config,
                                           const gossip::Algorithm& algorithm);

/// `local_rank`: this process among the processes that share the machine's GPUs; the default is one
/// process that hosts all nodes. `workload`: what is trained where model.kind is "external", with
/// rows in host memory; else null. `worker`: what this process holds of a cut model whose workers
/// are in processes of their own; its links outlive the setup. Errors (invalid; data if a file is
/// missing or damaged) say which settings do not fit together, and which would.
Result<Setup> make_setup(Config config, LocalRank local_rank = {},
                         std::shared_ptr<Workload> workload = nullptr,
                         train::Worker<float> worker = {});

/// make_setup() for the process of a network that hosts the peers `hosted` (not empty, ascending):
/// takes the addresses of net.members if net.peers has none, and finds the local rank. Errors too
/// as of add_addresses().
Result<Setup> make_network_setup(Config config, const std::vector<int>& hosted,
                                 const Environment& environment,
                                 std::shared_ptr<Workload> workload = nullptr,
                                 train::Worker<float> worker = {});

}  // namespace gossamer::peer
