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

/// One layer for `batch` samples: output from input.
template <class Real>
void forward(const LayerOperation& layer, int batch, const Real* parameters, Real* workspace);

/// The gradients of the layer's parameters and of its inputs, written, not added. The gradients of
/// its output are overwritten.
template <class Real>
void backward(const LayerOperation& layer, int batch, const Real* parameters, Real* gradient,
              Real* workspace);

struct LossResult {
  double loss = 0;  ///< mean over the batch
  std::int64_t hits = 0;
};

/// Loss of a batch and, if `gradient` is not null, `weight` times its gradient in the outputs
/// [batch, outputs]. Sample i of the batch is row samples[i] of `labels` or `targets`.
template <class Real>
LossResult softmax_cross_entropy(const Real* outputs, int batch, int classes,
                                 const std::int32_t* labels, const std::uint32_t* samples,
                                 double weight, Real* gradient);
template <class Real>
LossResult squared_error(const Real* outputs, int batch, const float* targets,
                         const std::uint32_t* samples, double weight, Real* gradient);

}  // namespace gossamer::gpu
