#include "train/privacy/options.hpp"

namespace gossamer::train {

const ParameterSet<PrivacyOptions>& privacy_parameters() {
  static const auto set =
      ParameterSet<PrivacyOptions>()
          .add("clip", &PrivacyOptions::clip,
               {.help = "largest norm of the gradient of a single sample: longer ones are scaled "
                        "down; 0: gradients are not private",
                .minimum = 0,
                .maximum = 1e9})
          .add("noise_multiplier", &PrivacyOptions::noise_multiplier,
               {.help = "standard deviation of the noise on the sum of a batch's gradients, in "
                        "multiples of clip; 0: as epsilon needs it",
                .minimum = 0,
                .maximum = 1e6})
          .add("epsilon", &PrivacyOptions::epsilon,
               {.help = "epsilon of the whole run, of the peer that spends most, in place of "
                        "noise_multiplier",
                .minimum = 0,
                .maximum = 1e6})
          .add("delta", &PrivacyOptions::delta,
               {.help = "delta at which epsilon is stated: well below 1 over the number of samples "
                        "of the largest shard",
                .minimum = 1e-12,
                .maximum = 0.5})
          .add("noise", &PrivacyOptions::noise,
               {.help = "secret: noise and batches are drawn from the operating system, and differ "
                        "in each run; reproducible: from run.seed, which everybody may know, so "
                        "that nothing is protected: for experiments",
                .choices = {"secret", "reproducible"}})
          .add("pair_noise", &PrivacyOptions::pair_noise,
               {.help = "standard deviation, in multiples of clip, of more noise that each two "
                        "neighbours add with opposite signs, from a secret that only they have: it "
                        "cancels in the mean (DECOR, Allouah et al. 2024); 0: none",
                .minimum = 0,
                .maximum = 1000})
          .add("colluding", &PrivacyOptions::colluding,
               {.help = "with pair_noise: epsilon holds against that many peers that put together "
                        "all that they know, and against every observer that knows less",
                .minimum = 0,
                .maximum = 16});
  return set;
}

}  // namespace gossamer::train
