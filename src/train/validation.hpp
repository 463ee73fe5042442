// The validation split: training samples that no peer trains on, for choices such as a step size,
// so that the test samples are not used for them.
#pragma once

#include "base/result.hpp"
#include "train/dataset.hpp"

namespace gossamer::train {

/// Takes the fraction context.validation of the training samples out of `data`, chosen at random,
/// the same for every run.seed; of own data, that fraction of each shard. The test samples are then
/// those of the split context.evaluate. The order of the other samples is kept. Errors (invalid):
/// the fraction leaves a group without training or without validation samples; there is nothing to
/// validate on; the samples are generated.
Status hold_out(Dataset& data, const DatasetContext& context);

}  // namespace gossamer::train
