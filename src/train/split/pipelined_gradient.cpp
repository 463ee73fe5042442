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
std::size_t PipelinedGradient<Real>::worker_bytes(const SplitModel& model, int part,
                                                  int microbatches) {
  const auto parts = static_cast<int>(model.parts().size());
  return gpu::DeviceRows<Real>::bytes(
      static_cast<std::size_t>(in_flight(part, parts, microbatches)),
      model.parts()[static_cast<std::size_t>(part)].program.workspace);
}

template <class Real>
std::size_t PipelinedGradient<Real>::workspace_bytes(const SplitModel& model, int microbatches) {
  std::size_t bytes = 0;
  for (int p = 0; p < static_cast<int>(model.parts().size()); ++p)
    bytes += worker_bytes(model, p, microbatches);
  return bytes;
}

template <class Real>
std::size_t PipelinedGradient<Real>::pass_bytes() const {
  std::size_t most = 0;
  for (const ModelPart& part : model_.parts())
    most = std::max(most, part.program.workspace + part.parameters());
  return device_.host_accessible() ? 0 : most * sizeof(Real);
}

template <class Real>
void PipelinedGradient<Real>::compute(const gpu::Task& task,
                                      std::span<const PipelinedRequest<Real>> requests) {
  while (!requests.empty()) {
    const int microbatches = options_.microbatches_of(requests[0].batch);
    if (std::exchange(microbatches_, microbatches) != microbatches) {
      for (std::vector<Replica>& replicas : replicas_) replicas.clear();
      order_ = pipeline_order(static_cast<int>(model_.parts().size()), microbatches);
    }
    const std::size_t bytes = workspace_bytes(model_, microbatches);
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
  const auto parts = static_cast<int>(model_.parts().size());
  const int gpu_index = device_.gpu_of(requests[0].parameters);
  std::vector<Replica>& replicas = replicas_[static_cast<std::size_t>(gpu_index)];
  while (replicas.size() < requests.size()) {
    Replica& replica = replicas.emplace_back();
    replica.loss_sum = gpu::DeviceRows<double>::on_gpu(device_, gpu_index, 1, 1);
    for (int p = 0; p < parts; ++p)
      replica.workspaces.push_back(gpu::DeviceRows<Real>::on_gpu(
          device_, gpu_index, static_cast<std::size_t>(in_flight(p, parts, microbatches_)),
          model_.parts()[static_cast<std::size_t>(p)].program.workspace));
  }
  for (const PipelineStep& step : order_) {
    if (!step.is_backward) move(requests, replicas, step);
    pass(task, requests, replicas, step);
    if (step.is_backward) move(requests, replicas, step);
  }
}

template <class Real>
Real* PipelinedGradient<Real>::workspace(const Replica& replica, int part, int microbatch) const {
  const auto parts = static_cast<int>(model_.parts().size());
  const int place = microbatch % in_flight(part, parts, microbatches_);
  return replica.workspaces[static_cast<std::size_t>(part)]
      .row(static_cast<std::size_t>(place))
      .data();
}

template <class Real>
void PipelinedGradient<Real>::pass(const gpu::Task& task,
                                   std::span<const PipelinedRequest<Real>> requests,
                                   std::span<const Replica> replicas, const PipelineStep& step) {
  const ModelPart& part = model_.parts()[static_cast<std::size_t>(step.part)];
  std::vector<gpu::PartJob<Real>> jobs;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const PipelinedRequest<Real>& request = requests[r];
    const Microbatch piece = Microbatch::of(request.batch, microbatches_, step.microbatch);
    jobs.push_back({.workspace = workspace(replicas[r], step.part, step.microbatch),
                    .parameters = request.parameters + part.row_begin,
                    .gradient = request.gradient + part.row_begin,
                    .samples = request.samples + piece.first,
                    .batch = piece.size,
                    .whole_batch = request.batch,
                    .first = step.microbatch == 0,
                    .last = step.microbatch + 1 == microbatches_,
                    .weight = request.weight,
                    .loss_sum = replicas[r].loss_sum.row(0).data(),
                    .loss = request.loss});
  }
  gpu::Task of_part = task;
  of_part.program = &part.program;
  device_.train_part(of_part, step.is_backward ? gpu::PartPass::backward : gpu::PartPass::forward,
                     jobs);
}

template <class Real>
void PipelinedGradient<Real>::move(std::span<const PipelinedRequest<Real>> requests,
                                   std::span<const Replica> replicas, const PipelineStep& step) {
  std::vector<gpu::CopyRequest<Real>> copies;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const auto samples = static_cast<std::size_t>(
        Microbatch::of(requests[r].batch, microbatches_, step.microbatch).size);
    for (const Crossing& crossing : model_.crossings()) {
      if (crossing.user != step.part) continue;
      Real* const made = workspace(replicas[r], crossing.maker, step.microbatch);
      Real* const used = workspace(replicas[r], crossing.user, step.microbatch);
      const std::size_t values = crossing.values * samples;
      if (step.is_backward)
        for (const Crossing::Gradient& gradient : crossing.gradients)
          copies.push_back({used + gradient.at_user, made + gradient.at_maker, values});
      else copies.push_back({made + crossing.at_maker, used + crossing.at_user, values});
    }
  }
  if (!copies.empty()) device_.execute(std::span<const gpu::CopyRequest<Real>>(copies));
}

template class PipelinedGradient<float>;
template class PipelinedGradient<double>;

}  // namespace gossamer::train
