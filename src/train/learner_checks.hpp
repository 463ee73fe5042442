// What a learner refuses: data, shards and models that do not fit each other.
#pragma once

#include "base/result.hpp"
#include "train/learner.hpp"

namespace gossamer::train {

/// Checks that the data are complete, that the shards name samples of theirs, and that samples
/// which a model embeds are tokens of its vocabulary. Reads all samples that are embedded. Errors
/// (invalid) name the data set, the peer or the operation.
Status check_request(const LearnerRequest& request);

/// What goes with a model that is cut over workers. Errors (invalid): private gradients, data that
/// add noise to gradients, and cuts of a model that is whole.
Status check_split(const LearnerRequest& request);

}  // namespace gossamer::train
