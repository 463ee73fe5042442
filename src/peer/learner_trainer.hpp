// Where the protocol's requests for training meet the learner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gossip/trainer.hpp"
#include "gpu/device_rows.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {

/// Serves the protocol's training requests with a Learner, and keeps the sum of each peer's batch losses on the device until
/// somebody asks. Thread: as Learner's.
class LearnerTrainer final : public gossip::Trainer {
 public:
  LearnerTrainer(train::Learner<float>& learner, gpu::Device& device, int peers);
  void run(gossip::TrainOperation operation, std::span<gossip::TrainRequest* const> requests) override;
  double rate(int peer, std::uint64_t step) const override { return learner_.rate(peer, step); }
  std::size_t shard_size(int peer) const override { return learner_.shard_size(peer); }
  std::uint64_t batches_per_epoch(int peer) const override { return learner_.batches_per_epoch(peer); }
  /// Peers are trained one by one, so that a peer's bits do not depend on who happens to be ready with it.
  void set_one_at_a_time(bool one_at_a_time) { one_at_a_time_ = one_at_a_time; }

 private:
  void train(gossip::TrainOperation operation, std::span<gossip::TrainRequest* const> requests);
  void update(std::span<gossip::TrainRequest* const> requests);
  void evaluate(std::span<gossip::TrainRequest* const> requests);
  void take_losses(std::span<gossip::TrainRequest* const> requests);

  train::Learner<float>& learner_;
  gpu::Device& device_;
  gpu::DeviceRows<double> loss_sums_;    ///< one row for each part of the device: by peer
  std::vector<std::uint64_t> losses_;    ///< by peer: how many are in the sum
  bool one_at_a_time_ = false;
};

}  // namespace gossamer::peer
