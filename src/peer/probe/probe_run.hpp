// `gossamer probe`: joins a network of processes that measure it, each with all others.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gossip/engine/peer_group.hpp"
#include "gpu/cpu_device.hpp"
#include "net/network.hpp"
#include "peer/probe/probe_algorithm.hpp"
#include "peer/probe/process_list.hpp"
#include "peer/probe/step_timer.hpp"
#include "peer/runtime/compute_thread.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

struct ProbeRequest {
  std::vector<int> hosted;  ///< nodes of this process, ascending
  /// As of NetworkRunRequest.
  std::shared_ptr<const net::Listening> listening = {};
  /// Lines for people.
  std::function<void(const std::string&)> message = [](const std::string&) {};
};

/// The configuration of the network that measures: another run id, and another folder where the
/// processes meet, so that it does not disturb the network that trains.
Config probe_config(Config config);

/// Measures with all other processes of the network. The process that hosts node 0 returns the
/// tables, and the others nothing. Errors: as of run_networked(); lost_peer names the process that
/// was lost.
Result<std::optional<ProbeTables>> probe_network(const Setup& setup, const ProbeRequest& request);

/// The run of one process. Thread: the one that calls it; it runs the scheduler.
class ProbeRun final : private gossip::EngineHooks {
 public:
  /// Setup and request outlive the run. Throws std::bad_alloc.
  ProbeRun(const Setup& setup, const ProbeRequest& request,
           std::unique_ptr<topology::MixingSchedule> all_pairs);

  /// probe_network(), once.
  Result<std::optional<ProbeTables>> run(std::optional<net::Credentials> credentials);

 private:
  void finished(gossip::PeerEngine& engine) override;
  gossip::GroupRequest group_request();
  net::NetworkSetup network_setup(std::optional<net::Credentials> credentials);
  void connect_faults();
  Status join();
  Status agree();
  Status measure_steps();
  Result<double> seconds_of_steps(int steps);
  Status compute(std::function<void()> work);
  Status measure_network();
  void fail(Error error);
  void abort(Error error);
  void notify_others();

  const Setup& setup_;
  const ProbeRequest& request_;
  std::unique_ptr<topology::MixingSchedule> all_pairs_;
  std::vector<std::vector<int>> processes_;  ///< the nodes of each
  std::optional<ProbeTables> tables_;
  std::optional<Error> error_;

  // Destroyed in reverse order: the thread first, then the network, then the rows that it reads.
  net::RealScheduler scheduler_;
  gpu::CpuDevice host_memory_{1};  ///< for peers that train on a GPU: links read host memory
  gpu::Device& device_;            ///< of the rows that are sent
  SharedMemory* shared_memory_;    ///< of these rows, where processes of this machine may read it
  gossip::InlineExecutor executor_;
  ProbeAlgorithm algorithm_{scheduler_};
  gossip::Compute compute_;
  gossip::PeerGroup group_;
  std::unique_ptr<net::Network> network_;
  StepTimer step_timer_;
  ComputeThread thread_;
};

}  // namespace gossamer::peer
