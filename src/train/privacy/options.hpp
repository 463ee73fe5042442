// The section `[privacy]`: whether the gradients of a peer hide its single samples, and how well.
#pragma once

#include <string>

#include "base/parameter.hpp"

namespace gossamer::train {

/// Of differentially private SGD (Abadi et al. 2016); train/privacy/private_gradient.hpp has the
/// formulas.
struct PrivacyOptions {
  double clip = 0;              ///< C, the largest norm of a sample's gradient; 0: no privacy
  double noise_multiplier = 0;  ///< σ; 0: from epsilon
  double epsilon = 0;           ///< of the whole run; 0: from noise_multiplier
  double delta = 1e-5;
  std::string noise = "secret";  ///< secret | reproducible
  double pair_noise = 0;         ///< τ, that two neighbours share; 0: none
  int colluding = 1;             ///< peers that tell what they share with others

  bool on() const { return clip > 0; }
};
const ParameterSet<PrivacyOptions>& privacy_parameters();

}  // namespace gossamer::train
