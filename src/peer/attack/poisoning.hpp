// Attacks on data: what hostile peers train on, and how the success of a backdoor is measured.
#pragma once

#include "base/result.hpp"
#include "gossip/attack.hpp"
#include "train/dataset.hpp"
#include "train/shards.hpp"

namespace gossamer::peer {

/// Changes the samples in the shards of the plan's hostile peers as its poisoning says:
///   label flip  class c becomes C − 1 − c, with C the number of classes
///   backdoor    a part of each shard gets the trigger and the target class (Gu, Dolan-Gavitt and
///               Garg 2017): of the k-th sample, k = 1, 2, …, those where ⌊k·share⌋ has grown
/// The trigger is a square of size × size pixels in the lower right corner, in all channels, with
/// the largest value that any feature of the data has. A sample is in one shard only. Errors
/// (invalid): data without classes, or without the target class; a backdoor in own data.
Status poison(train::Dataset& data, const train::Shards& shards, const gossip::AttackPlan& plan);

/// The test samples of other classes than the target, with the trigger, as training samples of the
/// target class: the accuracy of a model on them is the success rate of the backdoor. Error
/// (invalid): there are none.
Result<train::Dataset> triggered_samples(const train::Dataset& data,
                                         const gossip::Backdoor& backdoor);

}  // namespace gossamer::peer
