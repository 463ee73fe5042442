#include "train/split/pipelined_gradient.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::train {
namespace {

/// Replicas that compute together: as many as fit into this memory, but enough to keep the threads
/// of a machine busy, each with a replica.
constexpr std::size_t kBytesTogether = std::size_t{64} << 20, kLeastTogether = 16;

}  // namespace

template <class Real>
PipelinedGradient<Real>::PipelinedGradient(SplitModel model, SplitOptions options,
                                           gpu::BasicDevice<Real>& device)
    : model_(std::move(model)),
      options_(std::move(options)),
      device_(device),
      replicas_(static_cast<std::size_t>(device.gpu_count())) {}

template <class Real>
std::size_t PipelinedGradient<Real>::worker_bytes(const SplitModel& model, int worker,
                                                  int microbatches) {
  const ModelPart& part = model.parts()[static_cast<std::size_t>(worker)];
  return gpu::DeviceRows<Real>::bytes(
      static_cast<std::size_t>(Pipeline::of(model, microbatches).in_flight(part.stage)),
      part.workspace);
}

template <class Real>
std::size_t PipelinedGradient<Real>::workspace_bytes(const SplitModel& model, int microbatches) {
  std::size_t bytes = 0;
  for (int w = 0; w < static_cast<int>(model.parts().size()); ++w)
    bytes += worker_bytes(model, w, microbatches);
  return bytes;
}

template <class Real>
std::size_t PipelinedGradient<Real>::pass_bytes() const {
  std::size_t most = 0, rows = 0;
  for (const Segment& segment : model_.segments())
    most = std::max(most, segment.program.workspace + segment.program.parameters);
  if (options_.parameters > 1)
    for (const ModelPart& part : model_.parts())
      rows += gpu::DeviceRows<Real>::bytes(2, part.parameters);
  return (device_.host_accessible() ? 0 : most * sizeof(Real)) + rows;
}

template <class Real>
void PipelinedGradient<Real>::compute(const gpu::Task& task,
                                      std::span<const PipelinedRequest<Real>> requests) {
  while (!requests.empty()) {
    const Pipeline pipeline = Pipeline::of(model_, options_.microbatches_of(requests[0].batch));
    if (std::exchange(pipeline_, pipeline) != pipeline) {
      for (std::vector<Replica>& replicas : replicas_) replicas.clear();
      order_ = pipeline.order();
    }
    const std::size_t bytes = workspace_bytes(model_, pipeline.microbatches);
    const std::size_t most =
        std::max(kLeastTogether, kBytesTogether / std::max(bytes, kRowAlignment));
    const auto alike = [&](const PipelinedRequest<Real>& request) {
      return request.batch == requests[0].batch &&
             device_.gpu_of(request.parameters) == device_.gpu_of(requests[0].parameters);
    };
    std::size_t count = 1;
    while (count < std::min(most, requests.size()) && alike(requests[count])) ++count;
    compute_together(task, requests.first(count));
    requests = requests.subspan(count);
  }
}

template <class Real>
void PipelinedGradient<Real>::compute_together(const gpu::Task& task,
                                               std::span<const PipelinedRequest<Real>> requests) {
  const int gpu_index = device_.gpu_of(requests[0].parameters);
  std::vector<Replica>& replicas = replicas_[static_cast<std::size_t>(gpu_index)];
  while (replicas.size() < requests.size()) replicas.push_back(make_replica(gpu_index));
  copy_rows(requests, replicas, false);
  for (const PipelineStep& step : order_) {
    const auto [first, last] = model_.segments_of(step.stage);
    for (int k = 0; k < last - first; ++k) {
      const int segment = step.is_backward ? last - 1 - k : first + k;
      if (!step.is_backward) deliver(requests, replicas, step, segment);
      pass(task, requests, replicas, step, segment);
      if (step.is_backward) deliver(requests, replicas, step, segment);
    }
  }
  copy_rows(requests, replicas, true);
}

template <class Real>
PipelinedGradient<Real>::Replica PipelinedGradient<Real>::make_replica(int gpu_index) const {
  Replica replica;
  replica.loss_sum = gpu::DeviceRows<double>::on_gpu(device_, gpu_index, 1, 1);
  for (const ModelPart& part : model_.parts()) {
    const int count = pipeline_.in_flight(part.stage);
    replica.workspaces.push_back(gpu::DeviceRows<Real>::on_gpu(
        device_, gpu_index, static_cast<std::size_t>(count), part.workspace));
    if (options_.parameters > 1)
      replica.rows.push_back(gpu::DeviceRows<Real>::on_gpu(device_, gpu_index, 2, part.parameters));
  }
  return replica;
}

template <class Real>
void PipelinedGradient<Real>::copy_rows(std::span<const PipelinedRequest<Real>> requests,
                                        std::span<const Replica> replicas, bool back) {
  std::vector<gpu::CopyRequest<Real>> copies;
  for (std::size_t r = 0; r < requests.size(); ++r)
    for (std::size_t w = 0; w < replicas[r].rows.size(); ++w) {
      Real* const row = replicas[r].rows[w].row(back ? 1 : 0).data();
      model_.parts()[w].for_each_run([&](std::size_t whole, std::size_t own, std::size_t values) {
        if (back) copies.push_back({row + own, requests[r].gradient + whole, values});
        else copies.push_back({requests[r].parameters + whole, row + own, values});
      });
    }
  if (!copies.empty()) device_.execute(std::span<const gpu::CopyRequest<Real>>(copies));
}

template <class Real>
Real* PipelinedGradient<Real>::workspace(const Replica& replica, int worker, int microbatch) const {
  const auto w = static_cast<std::size_t>(worker);
  const int place = microbatch % pipeline_.in_flight(model_.parts()[w].stage);
  return replica.workspaces[w].row(static_cast<std::size_t>(place)).data();
}

template <class Real>
void PipelinedGradient<Real>::pass(const gpu::Task& task,
                                   std::span<const PipelinedRequest<Real>> requests,
                                   std::span<const Replica> replicas, const PipelineStep& step,
                                   int segment) {
  const Segment& own = segment_at(segment);
  const auto worker = static_cast<std::size_t>(own.worker);
  // Without layers that are cut inside, a worker's row is some of the model's.
  const std::size_t row_begin = model_.parts()[worker].pieces.front().whole + own.row_begin;
  std::vector<gpu::PartJob<Real>> jobs;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const PipelinedRequest<Real>& request = requests[r];
    const Replica& replica = replicas[r];
    const Microbatch piece = Microbatch::of(request.batch, pipeline_.microbatches, step.microbatch);
    const bool has_rows = !replica.rows.empty();
    jobs.push_back({.workspace = workspace(replica, own.worker, step.microbatch),
                    .parameters = has_rows ? replica.rows[worker].row(0).data() + own.row_begin
                                           : request.parameters + row_begin,
                    .gradient = has_rows ? replica.rows[worker].row(1).data() + own.row_begin
                                         : request.gradient + row_begin,
                    .samples = request.samples + piece.first,
                    .batch = piece.size,
                    .whole_batch = request.batch,
                    .first = step.microbatch == 0,
                    .last = step.microbatch + 1 == pipeline_.microbatches,
                    .weight = request.weight,
                    .loss_sum = replica.loss_sum.row(0).data(),
                    .loss = request.loss});
  }
  gpu::Task of_segment = task;
  of_segment.program = &own.program;
  device_.train_part(of_segment,
                     step.is_backward ? gpu::PartPass::backward : gpu::PartPass::forward, jobs);
}

template <class Real>
void PipelinedGradient<Real>::deliver(std::span<const PipelinedRequest<Real>> requests,
                                      std::span<const Replica> replicas, const PipelineStep& step,
                                      int segment) {
  std::vector<gpu::CopyRequest<Real>> copies;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const auto samples = static_cast<std::size_t>(
        Microbatch::of(requests[r].batch, pipeline_.microbatches, step.microbatch).size);
    for (const Message& message : step.is_backward ? model_.gradients() : model_.outputs()) {
      if ((step.is_backward ? message.from : message.to) != segment) continue;
      Real* const from = workspace(replicas[r], segment_at(message.from).worker, step.microbatch);
      Real* const to = workspace(replicas[r], segment_at(message.to).worker, step.microbatch);
      copies.push_back({from + message.at_from, to + message.at_to, message.values * samples});
    }
  }
  if (!copies.empty()) device_.execute(std::span<const gpu::CopyRequest<Real>>(copies));
}

template class PipelinedGradient<float>;
template class PipelinedGradient<double>;

}  // namespace gossamer::train
