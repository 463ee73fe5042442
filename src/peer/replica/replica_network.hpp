// The network of the workers of one replica, beside the network in which each of them mixes its
// part: outputs and gradients travel over it, and at the end the parts of the trained model. It has
// a thread of its own, so that a message reaches a worker that computes without a wait for the
// protocol of the other network.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/result.hpp"
#include "gossip/engine/peer_group.hpp"
#include "gpu/cpu_device.hpp"
#include "net/network.hpp"
#include "peer/replica/replica_links.hpp"
#include "peer/replica/worker_place.hpp"
#include "peer/runtime/members_watch.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

struct ReplicaRequest {
  WorkerPlace worker;
  Config config;  ///< replica_config()
  /// What the trainer of the setup's workload has.
  std::shared_ptr<ReplicaLinks> links;
  /// Lines for people.
  std::function<void(const std::string&)> message = [](const std::string&) {};
};

/// The algorithm of that network: one round, in which the messages of ReplicaLinks are exchanged:
/// those between calls of training, which one thread awaits one after the other, and those of
/// StepAgreement, which are answered at any time.
class ReplicaExchange final : public gossip::Algorithm {
 public:
  explicit ReplicaExchange(ReplicaLinks& links) : links_(links) {}

  /// Values of the longest part of a message that travels by itself: the memory that the network
  /// takes is bounded by it.
  static constexpr std::size_t kMostValues = 1 << 16;

  std::vector<gossip::RowSpec> rows(const topology::MixingSchedule& schedule) const override;
  gossip::AlgorithmRequirements requirements() const override;
  int steps_per_round() const override { return 0; }
  gossip::task<void> round(gossip::Node& node, gossip::Round t) const override;
  /// Beside round(), until it is destroyed: takes the messages of StepAgreement, and answers.
  /// `refuse`: the worker of part `from` sent what no worker sends.
  using Refuse = std::function<void(int from, const Error& why)>;
  gossip::task<void> agree(gossip::Node& node, Refuse refuse) const;
  /// All other nodes.
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override;

 private:
  static void send_agreement(gossip::Node& node,
                             const std::vector<ReplicaLinks::Message>& messages);

  ReplicaLinks& links_;
};

/// Thread: the one that makes it.
class ReplicaNetwork final : private gossip::EngineHooks {
 public:
  /// `setup`: of the worker's other network. Both outlive this. Errors (invalid; data): keys and
  /// addresses.
  static Result<std::unique_ptr<ReplicaNetwork>> make(const Setup& setup, ReplicaRequest request);
  ~ReplicaNetwork() override;

  /// Waits for the other workers of the replica. Errors: as of net::Network::join.
  Status join();
  /// Ends in order once all messages are sent; or, with the error that ended this worker's run,
  /// ends those of the others. Returns the error that had ended this network before, or `status`.
  Status leave(const Status& status);

 private:
  ReplicaNetwork(const Setup& setup, ReplicaRequest request,
                 std::unique_ptr<topology::MixingSchedule> all_pairs);
  void finished(gossip::PeerEngine& engine) override;
  gossip::GroupRequest group_request();
  Result<net::NetworkSetup> network_setup();
  void serve();
  Error of_replica(const char* what, const Error& error);
  /// The replica is not whole any more.
  void lose(const Error& error);

  const Setup& setup_;
  ReplicaRequest request_;
  std::unique_ptr<topology::MixingSchedule> all_pairs_;
  ReplicaExchange algorithm_;
  std::optional<Error> lost_;  ///< of the network's thread, and then of the other

  // Destroyed in reverse order: the thread first, then the network, then the rows that it reads.
  net::RealScheduler scheduler_;
  gpu::CpuDevice device_{1};  ///< of the rows that are sent
  gossip::InlineExecutor executor_;
  gossip::Compute compute_;
  gossip::PeerGroup group_;
  gossip::task<void> agreement_;
  std::unique_ptr<net::Network> network_;
  std::unique_ptr<MembersWatch> members_watch_;  ///< null without net.members
  std::thread thread_;
};

}  // namespace gossamer::peer
