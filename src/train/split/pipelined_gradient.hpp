// Gradients of a cut model, microbatch by microbatch: the workers of a replica, in one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/device_rows.hpp"
#include "train/split/pipeline.hpp"
#include "train/split/split_model.hpp"

namespace gossamer::train {

/// The gradient of one batch of one replica. Rows are device memory, of the whole model.
template <class Real>
struct PipelinedRequest {
  std::uint64_t step = 0;                  ///< local step number of the batch
  const std::uint32_t* samples = nullptr;  ///< [batch] indices into the table (host memory)
  int batch = 0;
  const Real* parameters = nullptr;
  Real* gradient = nullptr;  ///< out
  double weight = 1;         ///< the gradient of the batch's loss is multiplied by it
  double* loss = nullptr;    ///< the batch's mean loss is added
};

/// Thread: any, one at a time.
template <class Real>
class PipelinedGradient {
 public:
  /// `model`: for microbatches as large as those of `options` in the batches of the requests. The
  /// device outlives this.
  PipelinedGradient(SplitModel model, SplitOptions options, gpu::BasicDevice<Real>& device);

  /// The gradients have the bits of Pass::gradient of the whole model on the CPU. `task` has the
  /// samples; its program and its noise are not used.
  void compute(const gpu::Task& task, std::span<const PipelinedRequest<Real>> requests);

  /// Bytes of device memory that a worker takes beside its rows, and that all of a replica take.
  static std::size_t worker_bytes(const SplitModel& model, int part, int microbatches);
  static std::size_t workspace_bytes(const SplitModel& model, int microbatches);
  /// Bytes of device memory that a pass takes beside these: on a GPU a copy of the workspace and
  /// the gradient of a microbatch (gpu/cuda/training/parts.cu).
  std::size_t pass_bytes() const;

 private:
  /// The workspaces of a replica: for each part, of the microbatches in flight.
  struct Replica {
    std::vector<gpu::DeviceRows<Real>> workspaces;
    gpu::DeviceRows<double> loss_sum;
  };
  /// Requests of equal batches on one GPU.
  void compute_together(const gpu::Task& task, std::span<const PipelinedRequest<Real>> requests);
  void pass(const gpu::Task& task, std::span<const PipelinedRequest<Real>> requests,
            std::span<const Replica> replicas, const PipelineStep& step);
  /// Copies what crosses: outputs to part `step.part` before its forward pass, gradients from it
  /// after its backward pass.
  void move(std::span<const PipelinedRequest<Real>> requests, std::span<const Replica> replicas,
            const PipelineStep& step);
  Real* workspace(const Replica& replica, int part, int microbatch) const;

  SplitModel model_;
  SplitOptions options_;
  gpu::BasicDevice<Real>& device_;
  int microbatches_ = 0;  ///< for which the replicas have workspaces, and the order is
  std::vector<PipelineStep> order_;
  std::vector<std::vector<Replica>> replicas_;  ///< by GPU: those that compute together
};

}  // namespace gossamer::train
