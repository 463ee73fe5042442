// Where the protocol's requests for training meet the learner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gossip/trainer.hpp"
#include "gpu/device_rows.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {

/// Batch losses of a peer that nobody has asked for yet.
struct LossSum {
  double sum = 0;
  std::uint64_t count = 0;
};

/// Serves the protocol's training requests with a Learner, and keeps the sum of each peer's batch
/// losses on the device until somebody asks. Thread: as Learner's.
class LearnerTrainer final : public gossip::Trainer {
 public:
  LearnerTrainer(train::Learner<float>& learner, gpu::Device& device, int peers);
  void run(gossip::TrainOperation operation,
           std::span<gossip::TrainRequest* const> requests) override;
  double rate(int peer, std::uint64_t step) const override { return learner_.rate(peer, step); }
  std::size_t shard_size(int peer) const override { return learner_.shard_size(peer); }
  std::uint64_t batches_per_epoch(int peer) const override {
    return learner_.batches_per_epoch(peer);
  }
  /// Peers are trained one by one, so that a peer's bits do not depend on who happens to be ready
  /// with it.
  void set_one_at_a_time(bool one_at_a_time) { one_at_a_time_ = one_at_a_time; }

  /// What take_loss would give of a peer, which stays; and that it gives what another trainer had.
  /// `x` lies where the peer's rows do. Thread: as run's.
  LossSum losses_of(int peer) const;
  void set_losses(int peer, const LossSum& losses, const float* x);

 private:
  void train(gossip::TrainOperation operation, std::span<gossip::TrainRequest* const> requests);
  void update(std::span<gossip::TrainRequest* const> requests);
  void evaluate(std::span<gossip::TrainRequest* const> requests);
  void take_losses(std::span<gossip::TrainRequest* const> requests);

  train::Learner<float>& learner_;
  gpu::Device& device_;
  gpu::DeviceRows<double> loss_sums_;  ///< one row for each GPU of the device: by peer
  std::vector<std::uint64_t> losses_;  ///< by peer: how many are in the sum
  bool one_at_a_time_ = false;
};

}  // namespace gossamer::peer
