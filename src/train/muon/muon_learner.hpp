// Learning with Muon, over a learner that computes gradients.
#pragma once

#include <memory>

#include "train/learner.hpp"

namespace gossamer::train {

/// `learner` with the optimizer's steps taken by Muon (train/optimizer.hpp): the weights of the
/// layers before the last as matrices, all other tensors with AdamW. `device`, on which the
/// learner computes, outlives the result. Its updates are of whole rows.
template <class Real>
std::unique_ptr<Learner<Real>> make_muon_learner(std::unique_ptr<Learner<Real>> learner,
                                                 OptimizerOptions optimizer,
                                                 gpu::BasicDevice<Real>& device);

}  // namespace gossamer::train
