// The samples of a batch, found by optimisation: samples whose gradient has the direction of an
// update,
//   argmin_x  1 − ⟨∇θ L(x, y; θ), g⟩ / (‖∇θ L(x, y; θ)‖ ‖g‖),
// by Adam on the signs of the gradient in x, within the range of the data (Geiping, Bauermeister,
// Dröge and Moeller 2020, "Inverting Gradients"; after Zhu, Liu and Han 2019, "Deep Leakage from
// Gradients", who minimise the distance to g). The paper's prior for photographs, a small total
// variation, is left out: images of digits are found better without it. The labels y are known to
// the attack: of one sample, the update tells it (Zhao, Mopuri and Bilen 2020, iDLG).
//
// The gradient in x needs the derivative of ∇x L along a direction v in θ, which is taken as a
// central difference in double.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "peer/config/config.hpp"
#include "train/dataset.hpp"
#include "train/graph/sample_gradients.hpp"

namespace gossamer::peer {

/// Outlived by the data set.
class GradientInversion {
 public:
  /// Of the batches of a run, with `iterations` steps from each start. Errors as of make_model()
  /// and SampleGradients::make().
  static Result<GradientInversion> make(const Config& config, const train::Dataset& data,
                                        int iterations);

  /// [batch][features]: samples with these labels whose gradient at `parameters` ([d]) has the
  /// direction of `gradient` ([d]), the best of three starts that are drawn from `seed`. Thread:
  /// one at a time.
  std::vector<std::vector<float>> invert(std::span<const float> parameters,
                                         std::span<const double> gradient,
                                         std::span<const std::int32_t> labels, std::uint64_t seed);

 private:
  GradientInversion(train::SampleGradients gradients, const train::Dataset& data, int iterations);
  double search(std::span<const double> parameters, std::span<const double> gradient,
                std::span<const std::int32_t> labels, std::mt19937_64& random);
  double descend(std::span<const double> parameters, std::span<const double> gradient,
                 std::span<const std::int32_t> labels);

  train::SampleGradients gradients_;
  const train::Dataset& data_;
  int iterations_;
  float lowest_ = 0, highest_ = 0;  ///< of all features
  std::vector<float> samples_;      ///< x: [batch, channels, height, width]
  std::vector<float> best_;         ///< of a search
  std::vector<double> slope_;       ///< the gradient of the objective, as x
};

}  // namespace gossamer::peer
