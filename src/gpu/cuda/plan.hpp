// A training step of certain peers: where everything lies on the GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpu/cuda/layers.hpp"
#include "gpu/cuda/plan_cache.hpp"
#include "gpu/cuda/rows.hpp"
#include "gpu/cuda/training.hpp"

namespace gossamer::gpu::cuda {

template <class Real>
struct TrainingPlan final : Plan {
  Batch<Real> batch;
  Call* call = nullptr;  ///< device memory
  Now<Real> now = {};
  const RowTask<Real>* updates = nullptr;  ///< [peers], for steps
  EvenRows<Real> even = {};
  std::vector<DensePointers<Real>> pointers;  ///< [layers]
  std::size_t extra = 0;                      ///< in a workspace: where the layers' own room begins
};

/// Jobs of equal batch that are done together, and the memory they work in.
template <class Real>
struct PlanRequest {
  const Task& task;
  std::span<const Job<Real>> jobs;
  Work work;
  Real* workspace;
  std::size_t stride;  ///< workspace_values(program, peers, samples)
};

/// Values of a peer's workspace, the layers' own room included.
std::size_t workspace_values(const Program& program, int peers, int samples);

/// All that a step depends on, beside what calls bring along.
template <class Real>
std::string plan_key(const PlanRequest<Real>& request);

/// Lays the plan out in memory of `lane`'s cache and sends it there.
template <class Real>
std::unique_ptr<TrainingPlan<Real>> make_plan(Lane& lane, const PlanRequest<Real>& request);

}  // namespace gossamer::gpu::cuda
