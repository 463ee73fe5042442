// Whether a model tells which samples it was trained on: by their losses (Yeom, Giacomelli,
// Fredrikson and Jha 2018, "Privacy Risk in Machine Learning").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "gpu/cpu_device.hpp"
#include "peer/config/config.hpp"
#include "train/dataset.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {

/// Samples of one kind that are compared, at most: evenly spaced ones.
inline constexpr std::size_t kMostCompared = 500;

class MembershipAttack {
 public:
  /// `members`: by peer, the samples that it trained on. They are held against those of the test
  /// split. Errors as of make_model() and make_learner().
  static Result<MembershipAttack> make(const Config& config, const train::Dataset& data,
                                       const train::Shards& members);

  /// The area under the curve of the attack: the probability that a member has a smaller loss under
  /// the model `row` ([d]) than a test sample; equal losses count as half. 0.5: the losses tell
  /// nothing. Where the peer has other classes than the test split, they also tell that. None
  /// without test samples.
  std::optional<double> auc(std::span<const float> row, int peer) const;

 private:
  MembershipAttack() = default;
  std::vector<double> losses(std::span<const float> row, const std::vector<int>& samples) const;

  std::unique_ptr<gpu::CpuDevice> device_;
  std::unique_ptr<train::Learner<float>> learner_;  ///< each sample is the shard of a "peer"
  std::vector<std::vector<int>> members_;           ///< by peer: their numbers in the learner
  std::vector<int> others_;                         ///< likewise of the test samples
};

}  // namespace gossamer::peer
