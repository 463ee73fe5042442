// Whether a model tells which samples it was trained on: by their losses (Yeom, Giacomelli,
// Fredrikson and Jha 2018, "Privacy Risk in Machine Learning").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
  /// For the samples of `shards` and of the test split. Errors as of make_model() and
  /// make_learner().
  static Result<MembershipAttack> make(const Config& config, const train::Dataset& data,
                                       const train::Shards& shards);

  /// The probability that a sample of the peer's shard has a smaller loss under the model `row`
  /// ([d]) than a sample of the test split; equal losses count as half. 0.5: the losses tell
  /// nothing. None without test samples.
  std::optional<double> advantage(std::span<const float> row, int peer) const;

 private:
  MembershipAttack() = default;
  std::vector<double> losses(std::span<const float> row, const std::vector<int>& samples) const;

  std::unique_ptr<gpu::CpuDevice> device_;
  std::unique_ptr<train::Learner<float>> learner_;  ///< each sample is the shard of a "peer"
  std::vector<std::vector<int>> members_;           ///< by peer: their numbers in the learner
  std::vector<int> others_;                         ///< likewise of the test samples
};

}  // namespace gossamer::peer
