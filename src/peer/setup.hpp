// A configuration made real: topology and its checked matrices, algorithm, data, shards, model, device and trainer. What is
// wrong with a run is found here, before anything starts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/trainer.hpp"
#include "gpu/cpu_device.hpp"
#include "peer/config.hpp"
#include "topology/mixing_matrix.hpp"
#include "topology/report.hpp"
#include "train/dataset.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {

/// Serves the protocol's training requests with a Learner. Thread: as Learner's.
class LearnerTrainer final : public gossip::Trainer {
 public:
  explicit LearnerTrainer(train::Learner<float>& learner) : learner_(learner) {}
  void run(gossip::TrainOperation operation, std::span<gossip::TrainRequest* const> requests) override;

 private:
  train::Learner<float>& learner_;
};

/// Everything that the peers of a process share. Immutable but for the trainer's workspaces.
struct Setup {
  Config config;
  std::unique_ptr<topology::MixingSchedule> schedule;
  topology::TopologyReport report;
  std::unique_ptr<gossip::Algorithm> algorithm;
  std::unique_ptr<gpu::Device> device;
  std::shared_ptr<const train::Dataset> data;  ///< null where nothing trains
  std::unique_ptr<train::Learner<float>> learner;
  std::unique_ptr<LearnerTrainer> trainer;
  std::size_t parameters = 0;  ///< d

  /// Nodes of the whole run: one per peer, or one in all (`centralized`).
  int nodes() const { return algorithm->needs().one_node ? 1 : config.run.peers; }
  /// Starting value of a peer's parameters.
  void initialise(int peer, std::span<float> row) const;
  /// Hash of layer shapes (or the row's length): equal models exchange equal rows.
  std::string model_hash() const;
  /// Hash of the shared configuration and of the data's content.
  std::string configuration_hash() const;
};

/// Errors (invalid; data where a file is missing or damaged) say what does not fit and what would.
Result<Setup> make_setup(Config config);

}  // namespace gossamer::peer
