// The model, data and optimizer of a Python program, as a workload of the runtime.
#pragma once

#include <string>
#include <vector>

#include "handoff.hpp"
#include "peer/setup/workload.hpp"

namespace gossamer::python {

/// What the processes exchange of the programs' data before the first round, and its use.
struct OwnData {
  peer::Shards shards;       ///< of this process, and 0 samples for the others; none: no exchange
  std::size_t features = 0;  ///< of which the shards have the moments
  bool weighs = false;       ///< data.weights = samples: losses are weighed as samples
  bool weighs_gradients = true;  ///< gradients are multiplied; false: the algorithm does it
};

/// Every operation goes to the program through the handoff. The losses that it reports are summed
/// here, by peer.
class ExternalWorkload final : public peer::Workload, private gossip::Trainer {
 public:
  /// `nodes`: of the whole run, servers included. The handoff outlives the workload.
  ExternalWorkload(peer::WorkloadSpec spec, int nodes, Handoff& handoff, OwnData data)
      : spec_(std::move(spec)),
        handoff_(handoff),
        data_(std::move(data)),
        losses_(static_cast<std::size_t>(nodes)),
        rates_(static_cast<std::size_t>(nodes)) {}

  const peer::WorkloadSpec& spec() const override { return spec_; }
  void initialise(int node, std::span<float> row) const override;
  gossip::Trainer* trainer() override { return this; }
  std::vector<train::Evaluation> evaluate(const peer::RowViews& rows,
                                          std::span<const int> nodes) override;
  peer::LossSum loss_sum(int peer) const override {
    return losses_[static_cast<std::size_t>(peer)];
  }
  void set_loss_sum(int peer, const peer::LossSum& losses, const float*) override {
    losses_[static_cast<std::size_t>(peer)] = losses;
  }
  std::string save_state(int peer) override;
  void restore_state(int peer, std::string state) override;
  peer::Shards own_shards() const override { return data_.shards; }
  std::size_t standardised_features() const override { return data_.features; }
  /// The program gets the scales of its features before its next request.
  void agree(const peer::Shards& shards) override;
  std::string data_hash() const override { return {}; }  // the data stay where they are
  void set_one_at_a_time(bool) override {}               // they are served one by one anyway

 private:
  void run(gossip::TrainOperation operation,
           std::span<gossip::TrainRequest* const> requests) override;
  double rate(int peer, std::uint64_t) const override {
    return rates_[static_cast<std::size_t>(peer)];
  }
  bool keeps_state() const override { return true; }
  double data_weight(int peer) const override {
    return weights_.empty() ? 1 : weights_[static_cast<std::size_t>(peer)];
  }
  // Configurations that ask for them are refused.
  std::size_t shard_size(int) const override { return 1; }
  std::uint64_t batches_per_epoch(int) const override { return 1; }

  void serve(std::vector<Request>& batch) const;
  Request serve_alone(Request request) const;
  void train(Operation operation, std::span<gossip::TrainRequest* const> requests);
  void train_weighed(std::span<gossip::TrainRequest* const> requests);
  void serve_all(Operation operation, std::span<gossip::TrainRequest* const> requests);

  peer::WorkloadSpec spec_;
  Handoff& handoff_;
  OwnData data_;
  mutable std::vector<train::FeatureScale> unheard_;  ///< scales that the program does not have yet
  std::vector<double> weights_;  ///< by peer, mean 1; once all shards are known
  std::vector<peer::LossSum> losses_;
  std::vector<double> rates_;  ///< of the last step
};

}  // namespace gossamer::python
