// The pieces of a training step: what training.cu makes whole steps of, and parts.cu passes of
// parts of a network.
#pragma once

#include <span>

#include "gpu/cuda/training/plan.hpp"

namespace gossamer::gpu::cuda {

/// Uploads samples, rates and step numbers of steps first … first + count − 1 of the jobs.
template <class Real>
void send_call(StreamContext& context, const TrainingPlan<Real>& plan,
               std::span<const Job<Real>> jobs, Pass pass, int first, int count);

/// The outputs of all layers of the program.
template <class Real>
void run_forward(StreamContext& context, const TrainingPlan<Real>& plan, const Program& program);

/// The loss of the last layer's output, and its gradient. `share`: the part of a batch that the
/// plan's samples are; losses and gradients are multiplied by it.
template <class Real>
void run_loss(StreamContext& context, const TrainingPlan<Real>& plan, const Program& program,
              bool with_gradient, double share = 1);

/// The gradients of all layers.
template <class Real>
void run_backward(StreamContext& context, const TrainingPlan<Real>& plan, const Program& program);

}  // namespace gossamer::gpu::cuda
