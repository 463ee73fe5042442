// Runs one peer's job of a program on the calling thread: gather, forward, loss, backward, noise
// and update.
#pragma once

#include <vector>

#include "gpu/cpu/kernels.hpp"
#include "gpu/training.hpp"

namespace gossamer::gpu {

/// `workspace` holds task.program->workspace values at a 64-byte boundary; its content is
/// overwritten.
template <class Real>
void run_job(const Task& task, const Job<Real>& job, Pass pass, Real* workspace);

template <class Real>
void run_part(const Task& task, const PartJob<Real>& job, PartPass pass);

/// One layer for `batch` samples: output from input.
template <class Real>
void forward(const LayerOperation& layer, int batch, const Real* parameters, Real* workspace);

/// Which gradients of a layer a backward pass makes. The first one of a layer that has two makes
/// the gradient before its activation, which the second one finds.
struct WantedGradients {
  bool parameters = true, input = true, is_first = true;
};

/// The gradients of the layer's inputs, written, not added, and of its parameters, written or, with
/// `accumulate`, added. The gradients of its output are overwritten. `wanted`: less than all, of
/// dense layers and convolutions.
template <class Real>
void backward(const LayerOperation& layer, int batch, const Real* parameters, Real* gradient,
              Real* workspace, bool accumulate = false, WantedGradients wanted = {});

/// Sums over samples.
struct LossSums {
  double loss = 0;
  std::int64_t hits = 0;
};

/// Adds the samples' losses and hits to `sums`, one after the other, and, if `gradient` is not
/// null, writes `share` times the gradient of each sample's loss in its outputs: [batch, outputs].
/// Sample i is row samples[i] of `labels` or `targets`.
template <class Real>
void softmax_cross_entropy(const Real* outputs, int batch, int classes, const std::int32_t* labels,
                           const std::uint32_t* samples, Real share, Real* gradient,
                           LossSums& sums);
template <class Real>
void squared_error(const Real* outputs, int batch, const float* targets,
                   const std::uint32_t* samples, Real share, Real* gradient, LossSums& sums);

}  // namespace gossamer::gpu
