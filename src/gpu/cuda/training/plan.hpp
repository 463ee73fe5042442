// The plan of a training step of certain peers: the addresses of its data on the GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpu/cuda/kernels/rows.hpp"
#include "gpu/cuda/training/layers.hpp"
#include "gpu/cuda/training/plan_cache.hpp"
#include "gpu/cuda/training/training.hpp"

namespace gossamer::gpu::cuda {

template <class Real>
struct TrainingPlan final : Plan {
  Batch<Real> batch;
  CallInputs* call = nullptr;  ///< device memory
  StepInputs<Real> inputs = {};
  const RowTask<Real>* updates = nullptr;  ///< [peers], for Pass::step
  EvenRows<Real> even = {};
  std::vector<DensePointers<Real>> pointers;  ///< [layers]
  std::size_t extra = 0;  ///< offset of the layers' extra_values() in a workspace
};

/// Jobs of equal batch that run together, and their workspace.
template <class Real>
struct PlanRequest {
  const Task& task;
  std::span<const Job<Real>> jobs;
  Pass pass;
  Real* workspace;
  std::size_t stride;  ///< workspace_values(program, peers, samples)
};

/// Values of a peer's workspace, including the layers' extra_values().
std::size_t workspace_values(const Program& program, int peers, int samples);

/// Everything that a step depends on, except the inputs of each call.
template <class Real>
std::string plan_key(const PlanRequest<Real>& request);

/// Lays the plan out in memory of the context's cache, and uploads it.
template <class Real>
std::unique_ptr<TrainingPlan<Real>> make_plan(StreamContext& context,
                                              const PlanRequest<Real>& request);

}  // namespace gossamer::gpu::cuda
