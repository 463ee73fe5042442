// A configuration made real: topology and its checked matrices, algorithm, data, shards, model,
// device and trainer. What is wrong with a run is found here, before anything starts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/links/network_model.hpp"
#include "gpu/device.hpp"
#include "peer/config/config.hpp"
#include "peer/runtime/device_choice.hpp"
#include "peer/runtime/learner_trainer.hpp"
#include "topology/mixing_matrix.hpp"
#include "topology/report.hpp"
#include "train/dataset.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {

/// Everything that the peers of a process share. Immutable but for the trainer's workspaces. The
/// device outlives what lies in its memory.
struct Setup {
  Config config;
  std::unique_ptr<topology::MixingSchedule> schedule;
  topology::TopologyReport report;
  std::unique_ptr<gossip::Algorithm> algorithm;
  std::unique_ptr<gossip::Codec> codec;
  gossip::NetworkModel network;  ///< what [sim] says of links
  std::unique_ptr<gpu::Device> device;
  std::string device_note;  ///< a line for people about the choice of the device; mostly empty
  std::shared_ptr<const train::Dataset> data;  ///< null where nothing trains
  std::unique_ptr<train::Learner<float>> learner;
  std::unique_ptr<LearnerTrainer> trainer;
  std::size_t parameters = 0;  ///< d

  /// Nodes that train: one per peer, or one in all (`centralized`).
  int workers() const { return algorithm->needs().one_node ? 1 : config.run.peers; }
  /// Whether the run goes on when a peer is lost.
  bool tolerates_peer_loss() const {
    return algorithm->needs().tolerates_peer_loss && config.net.on_loss == "continue";
  }
  /// Nodes whose role is server; their ids follow the workers'.
  int servers() const { return algorithm->needs().servers; }
  /// Nodes of the whole run.
  int nodes() const { return workers() + servers(); }
  bool is_server(int node) const { return node >= workers(); }
  /// Whether the node's row is a whole model, to be evaluated and kept: one of several servers has
  /// a part of it only.
  bool holds_model(int node) const { return !is_server(node) || servers() == 1; }
  /// Local steps of a peer in a round that it takes part in.
  std::uint64_t steps_per_round(int peer) const;
  /// Virtual time of one local step of a peer that is not slow, in milliseconds. Full batches count
  /// as shards of equal size.
  double step_ms() const;
  /// Starting value of a peer's parameters.
  void initialise(int peer, std::span<float> row) const;
  /// Hash of layer shapes (or the row's length): equal models exchange equal rows.
  std::string model_hash() const;
  /// Hash of the shared configuration and of the data's content.
  std::string configuration_hash() const;
};

/// The W that a configuration asks for, mixed by `algorithm`.
topology::ScheduleRequest schedule_request(const Config& config,
                                           const gossip::Algorithm& algorithm);

/// Errors (invalid; data where a file is missing or damaged) say what does not fit and what would.
/// `place`: where several processes of a machine share its GPUs; as it is, one process hosts all
/// nodes.
Result<Setup> make_setup(Config config, ProcessPlace place = {});

/// Whether the rows and workspaces of `hosted` nodes, spread over the device's GPUs, fit its own
/// memory: an error (invalid) says what is needed and for how many there is room. Host memory is
/// not judged.
Status check_memory(const Setup& setup, std::size_t hosted);

}  // namespace gossamer::peer
