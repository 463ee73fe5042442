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
  static std::size_t worker_bytes(const SplitModel& model, int worker, int microbatches);
  static std::size_t workspace_bytes(const SplitModel& model, int microbatches);
  /// Bytes of device memory that a pass takes beside these: on a GPU a copy of the workspace and
  /// the gradient of a microbatch (gpu/cuda/training/parts.cu), and rows of the workers where they
  /// are no part of the model's row.
  std::size_t pass_bytes() const;

 private:
  /// The memory of a replica.
  struct Replica {
    std::vector<gpu::DeviceRows<Real>> workspaces;  ///< by worker: of the microbatches in flight
    /// By worker whose layers are cut inside: its parameters and their gradient.
    std::vector<gpu::DeviceRows<Real>> rows;
    gpu::DeviceRows<double> loss_sum;
  };
  /// Requests of equal batches on one GPU.
  void compute_together(const gpu::Task& task, std::span<const PipelinedRequest<Real>> requests);
  Replica make_replica(int gpu_index) const;
  /// Copies what the workers have of the model's rows to theirs, and gradients back.
  void copy_rows(std::span<const PipelinedRequest<Real>> requests,
                 std::span<const Replica> replicas, bool back);
  void pass(const gpu::Task& task, std::span<const PipelinedRequest<Real>> requests,
            std::span<const Replica> replicas, const PipelineStep& step, int segment);
  /// Copies what crosses: outputs to a segment before its forward pass, gradients from it after its
  /// backward pass. Before and after these, other microbatches may be in their place.
  void deliver(std::span<const PipelinedRequest<Real>> requests, std::span<const Replica> replicas,
               const PipelineStep& step, int segment);
  const Segment& segment_at(int segment) const {
    return model_.segments()[static_cast<std::size_t>(segment)];
  }
  Real* workspace(const Replica& replica, int worker, int microbatch) const;

  SplitModel model_;
  SplitOptions options_;
  gpu::BasicDevice<Real>& device_;
  Pipeline pipeline_{.microbatches = 0};  ///< for which the replicas have workspaces
  std::vector<PipelineStep> order_;
  std::vector<std::vector<Replica>> replicas_;  ///< by GPU: those that compute together
};

}  // namespace gossamer::train
