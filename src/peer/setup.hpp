// A configuration made real: topology and its checked matrices, algorithm, data, shards, model, device and trainer. What is
// wrong with a run is found here, before anything starts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/trainer.hpp"
#include "gpu/device_rows.hpp"
#include "peer/config.hpp"
#include "topology/mixing_matrix.hpp"
#include "topology/report.hpp"
#include "train/dataset.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {

/// Serves the protocol's training requests with a Learner, and keeps the sum of each peer's batch losses on the device until
/// somebody asks. Thread: as Learner's.
class LearnerTrainer final : public gossip::Trainer {
 public:
  LearnerTrainer(train::Learner<float>& learner, gpu::Device& device, int peers);
  void run(gossip::TrainOperation operation, std::span<gossip::TrainRequest* const> requests) override;
  double rate(std::uint64_t step) const override { return learner_.rate(step); }
  /// Peers are trained one by one, so that a peer's bits do not depend on who happens to be ready with it.
  void set_one_at_a_time(bool one_at_a_time) { one_at_a_time_ = one_at_a_time; }

 private:
  void train(gossip::TrainOperation operation, std::span<gossip::TrainRequest* const> requests);
  void update(std::span<gossip::TrainRequest* const> requests);
  void evaluate(std::span<gossip::TrainRequest* const> requests);
  void take_losses(std::span<gossip::TrainRequest* const> requests);

  train::Learner<float>& learner_;
  gpu::Device& device_;
  gpu::DeviceRows<double> loss_sums_;    ///< one row: by peer
  std::vector<std::uint64_t> losses_;    ///< by peer: how many are in the sum
  bool one_at_a_time_ = false;
};

/// Everything that the peers of a process share. Immutable but for the trainer's workspaces. The device outlives what lies
/// in its memory.
struct Setup {
  Config config;
  std::unique_ptr<topology::MixingSchedule> schedule;
  topology::TopologyReport report;
  std::unique_ptr<gossip::Algorithm> algorithm;
  std::unique_ptr<gpu::Device> device;
  std::string device_note;  ///< a line for people about the choice of the device; mostly empty
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

/// Errors (invalid; data where a file is missing or damaged) say what does not fit and what would. `process`: this process's
/// number among those of its machine, by which they spread over its cards.
Result<Setup> make_setup(Config config, int process = 0);

/// Whether the rows and workspaces of `hosted` nodes fit the device's own memory: an error (invalid) says what is needed and
/// for how many there is room. Host memory is not judged.
Status check_memory(const Setup& setup, std::size_t hosted);

}  // namespace gossamer::peer
