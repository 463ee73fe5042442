// The protocol's interface to training (gossip/trainer.hpp), implemented over train::Learner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gossip/trainer.hpp"
#include "gpu/device_rows.hpp"
#include "peer/setup/workload.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {

/// Executes the protocol's training requests with a Learner. Accumulates each peer's batch losses
/// on the device, and reads them only on request. Thread: as of Learner.
class LearnerTrainer final : public gossip::Trainer {
 public:
  /// `account`: of private gradients, or null. `links`: of the worker that the learner is, or null.
  /// They outlive this object, as `learner` and `device`.
  LearnerTrainer(train::Learner<float>& learner, gpu::Device& device, int peers,
                 PrivacyAccount* account, train::WorkerLinks<float>* links = nullptr);
  void run(gossip::TrainOperation operation,
           std::span<gossip::TrainRequest* const> requests) override;
  double rate(int peer, std::uint64_t step) const override { return learner_.rate(peer, step); }
  std::size_t shard_size(int peer) const override { return learner_.shard_size(peer); }
  std::uint64_t batches_per_epoch(int peer) const override {
    return learner_.batches_per_epoch(peer);
  }
  double data_weight(int peer) const override { return learner_.data_weight(peer); }
  void set_one_at_a_time(bool one_at_a_time) { one_at_a_time_ = one_at_a_time; }

  /// As of Workload. Thread: as of run().
  LossSum loss_sum(int peer) const;
  void set_loss_sum(int peer, const LossSum& losses, const float* x);

 private:
  /// Does what `operation` does to rows where the replica leaves the local steps out. Returns
  /// whether it does.
  bool leave_out(gossip::TrainOperation operation, std::span<gossip::TrainRequest* const> requests);
  void train(gossip::TrainOperation operation, std::span<gossip::TrainRequest* const> requests);
  void update(std::span<gossip::TrainRequest* const> requests);
  void evaluate(std::span<gossip::TrainRequest* const> requests);
  void batch_losses(std::span<gossip::TrainRequest* const> requests);
  void take_losses(std::span<gossip::TrainRequest* const> requests);

  train::Learner<float>& learner_;
  gpu::Device& device_;
  PrivacyAccount* account_;
  train::WorkerLinks<float>* links_;
  gpu::DeviceRows<double> loss_sums_;       ///< one row per GPU of the device, indexed by peer
  std::vector<std::uint64_t> loss_counts_;  ///< losses in the sum, by peer
  bool one_at_a_time_ = false;
};

}  // namespace gossamer::peer
