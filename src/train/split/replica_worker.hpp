// The passes of one worker of a replica whose workers are in processes of their own: what
// PipelinedGradient (pipelined_gradient.hpp) does for all workers of a replica in one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/device_rows.hpp"
#include "train/scoring/scoring.hpp"
#include "train/split/pipelined_gradient.hpp"
#include "train/split/split_model.hpp"
#include "train/split/worker_links.hpp"

namespace gossamer::train {

/// All workers of a replica make the same calls in the same order. Every call throws WorkerLost,
/// also where it is another one than that of the worker before. Thread: any, one at a time.
template <class Real>
class ReplicaWorker {
 public:
  /// `training`, `evaluation`: the model, with the same cuts; the first for microbatches as large
  /// as those of `options` in the batches of gradient(), the second for those of score(). Links and
  /// device outlive this.
  ReplicaWorker(Worker<Real> worker, SplitModel training, SplitModel evaluation,
                SplitOptions options, gpu::BasicDevice<Real>& device);

  /// The gradient of one batch in this worker's parameters, with the bits of the whole model's on
  /// the CPU. Rows of the request are of this part. Every worker learns the loss.
  void gradient(const gpu::Task& task, const PipelinedRequest<Real>& request);

  /// Scores of a replica, with the bits of train::score() on the CPU. Every worker learns them.
  void score(const gpu::Task& task, ScoreRequest<Real>& request);
  /// Bytes of device memory that the worker takes beside its rows.
  std::size_t workspace_bytes(int batch) const;

 private:
  struct Sums {
    double loss_sum = 0, loss = 0;
  };

  int workers() const { return static_cast<int>(training_.parts().size()); }
  bool has_loss() const { return worker_.part == training_.last_worker(); }
  const ModelPart& part_of(const SplitModel& model) const {
    return model.parts()[static_cast<std::size_t>(worker_.part)];
  }
  /// On the GPU of the rows, for as many values at least.
  void allocate(const Real* parameters, std::size_t values);
  /// The pass of the stage: this worker's segments, with the messages that they take and send.
  /// `job`: of the worker's row and workspace.
  void pass(const SplitModel& model, gpu::Task task, bool is_backward,
            const gpu::PartJob<Real>& job);
  std::vector<Score> score_some(const gpu::Task& task, const Real* parameters,
                                std::span<const Piece> pieces);
  void send(int part, const Real* values, std::size_t count);
  void receive(int part, Real* values, std::size_t count);
  /// The worker that has the loss sends its numbers to all others, which receive them.
  void share(std::span<double> numbers);
  /// Each worker sends the next one the number of the step that it begins, or that it evaluates.
  void agree(double call);

  Worker<Real> worker_;
  SplitModel training_, evaluation_;
  SplitOptions options_;
  gpu::BasicDevice<Real>& device_;
  /// One behind the other those of the microbatches in flight, or that of a piece: a worker does
  /// not train and evaluate at once.
  gpu::DeviceRows<Real> workspace_;
  gpu::DeviceRows<double> sums_;        ///< loss_sum, and loss, of a batch or a piece
  gpu::DeviceRows<std::int64_t> hits_;  ///< of a piece
  std::vector<Real> staged_;            ///< a message on its way between device and host memory
};

}  // namespace gossamer::train
