#include "train/split/options.hpp"

namespace gossamer::train {

const ParameterSet<SplitOptions>& split_parameters() {
  static const auto set =
      ParameterSet<SplitOptions>()
          .add("layers", &SplitOptions::layers,
               {.help =
                    "number of stages, each some consecutive operations of the model, into which "
                    "a replica is cut; each is a worker's",
                .minimum = 1,
                .maximum = SplitOptions::kMostLayers,
                .unit = "stages"})
          .add("parameters", &SplitOptions::parameters,
               {.help = "number of workers that share each stage: dense operations by units, "
                        "convolutions by channels, attention by heads",
                .minimum = 1,
                .maximum = SplitOptions::kMostParameters,
                .unit = "workers"})
          .add("microbatches", &SplitOptions::microbatches,
               {.help = "number of parts into which a batch is cut, so that workers compute at the "
                        "same time; 0: four for each stage. The result has the same bits for any",
                .minimum = 0,
                .maximum = SplitOptions::kMostMicrobatches})
          .add(
              "cuts", &SplitOptions::cuts,
              {.help =
                   "names of the operations with which the second and each later stage begins "
                   "(`gossamer model` shows them); auto or empty: chosen so that the largest stage "
                   "has as little arithmetic as possible"})
          .add("schedule", &SplitOptions::schedule,
               {.help = "the order of a stage's passes: one forward, one backward (1f1b); with "
                        "eager_1f1b up to twice as many forward passes come before the first "
                        "backward one, so that messages travel while stages compute, which takes "
                        "memory for their activations. The result has the same bits",
                .choices = {"1f1b", "eager_1f1b"}})
          .add("overlap", &SplitOptions::overlap,
               {.help = "a stage whose first operation is dense or a convolution sends the "
                        "gradients that the stage before it needs, and then makes those of that "
                        "operation's parameters, so that stages wait less for each other; false: "
                        "it sends them when its backward pass is done. The result has the same "
                        "bits"})
          .add("encode", &SplitOptions::encode,
               {.help = "of what [codec] makes messages: of the whole row of a model, or of each "
                        "worker's part by itself, which workers in processes of their own need for "
                        "every codec but none and bf16. With part, the codec's blocks and "
                        "selections, and with them the bits of a run, depend on the cut",
                .choices = {"model", "part"}});
  return set;
}

}  // namespace gossamer::train
