#include "train/split/options.hpp"

namespace gossamer::train {

const ParameterSet<SplitOptions>& split_parameters() {
  static const auto set =
      ParameterSet<SplitOptions>()
          .add("layers", &SplitOptions::layers,
               {.help = "number of workers that hold a replica of the model, each some consecutive "
                        "operations; 1: the model is whole",
                .minimum = 1,
                .maximum = SplitOptions::kMostLayers,
                .unit = "workers"})
          .add("microbatches", &SplitOptions::microbatches,
               {.help = "number of parts into which a batch is cut, so that workers compute at the "
                        "same time; 0: four for each worker. The result has the same bits for any",
                .minimum = 0,
                .maximum = SplitOptions::kMostMicrobatches})
          .add("cuts", &SplitOptions::cuts,
               {.help = "names of the operations with which the second and each later part begins "
                        "(`gossamer model` shows them); empty: chosen so that the largest part has "
                        "as little arithmetic as possible"});
  return set;
}

}  // namespace gossamer::train
