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
          .add("encode", &SplitOptions::encode,
               {.help = "of what [codec] makes messages: of the whole row of a model, or of each "
                        "worker's part by itself, which workers in processes of their own need for "
                        "every codec but none and bf16. With part, the codec's blocks and "
                        "selections, and with them the bits of a run, depend on the cut",
                .choices = {"model", "part"}});
  return set;
}

}  // namespace gossamer::train
