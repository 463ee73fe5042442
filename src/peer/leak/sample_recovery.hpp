// Training samples read off an update of the parameters, where a dense operation takes them.
//
// The gradient of unit j's weights is Σ_s δ_sj x_s, and that of its bias Σ_s δ_sj, over the samples
// s of a batch. So their quotient is the sample itself if one sample alone reaches the unit, and
// otherwise a weighted mean of samples (Phong et al. 2018, "Privacy-Preserving Deep Learning via
// Additively Homomorphic Encryption", section 3). A step of SGD is a multiple of the gradient, so
// the quotient of its parts is the same. The weight gradients of one sample are the
// products δ_j x of all units, a matrix of rank 1. So where the messages of a codec have rounded an
// update, or left values of it out, a fit of rank 1 to what is there finds x up to its scale, which
// the bias gradients tell. The largest entry of
// the last bias's step is the label of a batch of one sample (Zhao, Mopuri and Bilen 2020, iDLG).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "train/dataset.hpp"
#include "train/graph/compiled_model.hpp"

namespace gossamer::peer {

/// A sample, and the candidate nearest to it.
struct RecoveredSample {
  std::uint32_t sample = 0;     ///< number in the data set
  double psnr = 0;              ///< peak signal-to-noise ratio, dB, at most kMostPsnr
  std::vector<float> features;  ///< of the candidate
};
/// Candidates that are nearer than rounding to float32 leaves.
inline constexpr double kMostPsnr = 100;

class SampleRecovery {
 public:
  /// `data` and `blocks` (the tensors of a row) outlive it.
  SampleRecovery(const train::Dataset& data, const std::vector<train::ParameterBlock>& blocks);

  /// Whether a dense operation with a bias takes the samples: else no sample is read off.
  bool possible() const { return weights_ != nullptr; }
  /// [candidates, features]: what each unit of that operation gives, and all together, within the
  /// range of the data. `update`: [d].
  std::vector<std::vector<float>> candidates(std::span<const double> update) const;
  /// For each of `samples` the nearest candidate, the best first. No candidate: empty.
  std::vector<RecoveredSample> match(std::span<const std::uint32_t> samples,
                                     const std::vector<std::vector<float>>& candidates) const;
  /// `count` samples of the test split, or fewer: candidates that tell nothing of a batch, with
  /// which a match is to be compared.
  std::vector<std::vector<float>> other_samples(std::size_t count) const;
  /// The label that the update shows of a batch of one sample; none without classes, or if
  /// the outputs are not those of a dense operation with a bias.
  std::optional<int> label(std::span<const double> update) const;

 private:
  /// [inputs]: the sample that all units have, if there is one; empty if all weights are 0.
  std::vector<double> common_sample(std::span<const double> weights,
                                    std::span<const double> biases) const;
  std::size_t input_of(std::size_t feature) const;
  double psnr(std::span<const float> a, std::span<const float> b) const;

  const train::Dataset& data_;
  const std::vector<train::ParameterBlock>& blocks_;
  /// Of the dense operation that takes the samples; null: there is none.
  const train::ParameterBlock* weights_ = nullptr;
  const train::ParameterBlock* bias_ = nullptr;
  float lowest_ = 0, highest_ = 0;  ///< of all features
};

}  // namespace gossamer::peer
