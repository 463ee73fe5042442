#include "gpu/cuda/training/training.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "gpu/cuda/training/step.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// Most jobs of a batch: one dimension of a grid, and a bound on the size of a call's inputs.
constexpr std::size_t kMostPeers = 4096;
/// Bytes of samples and rates that are uploaded together.
constexpr std::size_t kSendBytes = UploadRing::kSegmentBytes / 2;

/// One step of all peers: gather, forward, loss, backward, noise, update.
template <class Real>
void run_step(StreamContext& context, const TrainingPlan<Real>& plan, const Task& task, Pass pass) {
  const Program& program = *task.program;
  gather(context.stream(), plan.batch, task, plan.call, plan.inputs, pass == Pass::step);
  run_forward(context, plan, program);
  run_loss(context, plan, program, pass != Pass::evaluate);
  if (pass == Pass::evaluate) return;
  run_backward(context, plan, program);
  if (task.noise.deviation > 0)
    add_noise(context.stream(), plan.batch, task.noise, plan.inputs, program.parameters);
  if (pass == Pass::step)
    launch_update(context.stream(), task.rule, plan.updates,
                  static_cast<std::size_t>(plan.batch.peers), program.parameters);
}

/// Captures the work that body() enqueues on the stream as a graph. `body` must not wait or
/// allocate. Empty if CUDA does not capture it. What the GPU itself has to report, it reports again
/// when the work is enqueued.
template <class Body>
GraphExecutable captured(StreamContext& context, Body body) {
  const std::lock_guard lock(context.capturing());
  cudaError_t error = cudaStreamBeginCapture(context.stream(), cudaStreamCaptureModeThreadLocal);
  cudaGraphExec_t executable = nullptr;
  if (error == cudaSuccess) {
    bool whole = true;
    try {
      body();
    } catch (const std::exception&) {
      whole = false;
    }
    cudaGraph_t raw = nullptr;
    error = cudaStreamEndCapture(context.stream(), &raw);
    const Graph graph(raw);
    if (whole && error == cudaSuccess) error = cudaGraphInstantiate(&executable, graph.get(), 0);
  }
  static_cast<void>(cudaGetLastError());
  return GraphExecutable(error == cudaSuccess ? executable : nullptr);
}

template <class Real>
void run_plan(StreamContext& context, TrainingPlan<Real>& plan, const PlanRequest<Real>& request) {
  const std::size_t peers = request.jobs.size(),
                    batch = static_cast<std::size_t>(request.jobs[0].batch);
  const std::size_t step_bytes = peers * (batch * sizeof(std::uint32_t) + sizeof(double));
  const int steps = request.jobs[0].steps;
  const auto together =
      static_cast<int>(std::clamp<std::size_t>(kSendBytes / step_bytes, 1, 1 << 20));
  const auto step = [&] { run_step(context, plan, request.task, request.pass); };
  for (int first = 0; first < steps; first += together) {
    const int count = std::min(together, steps - first);
    send_call(context, plan, request.jobs, request.pass, first, count);
    for (int s = 0; s < count; ++s) {
      if (plan.ran && !plan.graph && plan.captures && request.pass != Pass::evaluate) {
        plan.graph = captured(context, step);
        plan.captures = static_cast<bool>(plan.graph);
      }
      if (plan.graph) GOSSAMER_CUDA(cudaGraphLaunch, plan.graph.get(), context.stream());
      else step();
      plan.ran = true;
    }
  }
}

/// Plans of evaluations are not kept, because each evaluation has other pieces and memory.
template <class Real>
void run_batch(StreamContext& context, const PlanRequest<Real>& request) {
  if (request.pass == Pass::evaluate) {
    const auto plan = make_plan(context, request);
    run_plan(context, *plan, request);
    context.plans().give(std::move(plan->memory));
    return;
  }
  std::string key = plan_key(request);
  Plan* plan = context.plans().find(key);
  if (plan == nullptr) plan = context.plans().insert(std::move(key), make_plan(context, request));
  run_plan(context, static_cast<TrainingPlan<Real>&>(*plan), request);
}

/// How many of `jobs` jobs run together.
std::size_t jobs_together(const Program& program, std::size_t jobs, int samples,
                          std::size_t value_bytes, std::size_t most_bytes) {
  std::size_t count = std::min(jobs, kMostPeers);
  while (count > 1) {
    const std::size_t fit =
        most_bytes / (workspace_values(program, static_cast<int>(count), samples) * value_bytes);
    if (fit >= count) break;
    count = std::max<std::size_t>(1, std::min(fit, count - 1));
  }
  const std::size_t batches = pieces_of(jobs, count);
  return pieces_of(jobs, batches);  // batches of nearly equal size
}

/// Runs jobs of equal batch and steps.
template <class Real>
void run_alike(StreamContext& context, const Task& task, Pass pass, std::span<const Job<Real>> jobs,
               std::size_t most_bytes) {
  const Program& program = *task.program;
  const int samples = jobs[0].batch;
  GOSSAMER_CHECK(samples >= 1 && samples <= program.batch, "a job's batch fits its program");
  std::size_t together = jobs_together(program, jobs.size(), samples, sizeof(Real), most_bytes);
  while (!jobs.empty()) {
    const auto some = jobs.first(std::min(together, jobs.size()));
    const std::size_t stride = workspace_values(program, static_cast<int>(some.size()), samples);
    Real* workspace = nullptr;
    try {
      workspace =
          static_cast<Real*>(context.plans().workspace(some.size() * stride * sizeof(Real)));
    } catch (const std::bad_alloc&) {
      if (some.size() == 1) throw;
      together = (some.size() + 1) / 2;
      continue;
    }
    run_batch<Real>(context, {task, some, pass, workspace, stride});
    jobs = jobs.subspan(some.size());
  }
}

}  // namespace

template <class Real>
void train(StreamContext& context, const Task& task, Pass pass, std::span<const Job<Real>> jobs,
           std::size_t most_bytes) {
  const auto alike = [](const Job<Real>& a, const Job<Real>& b) {
    return a.batch == b.batch && a.steps == b.steps;
  };
  const bool all_alike =
      std::ranges::all_of(jobs, [&](const Job<Real>& job) { return alike(job, jobs[0]); });
  std::vector<Job<Real>> sorted;
  if (!all_alike) {
    sorted.assign(jobs.begin(), jobs.end());
    std::ranges::stable_sort(sorted, {},
                             [](const Job<Real>& job) { return std::pair(job.batch, job.steps); });
    jobs = sorted;
  }
  while (!jobs.empty()) {
    const auto end =
        std::ranges::find_if(jobs, [&](const Job<Real>& job) { return !alike(job, jobs[0]); });
    const auto group = jobs.first(static_cast<std::size_t>(end - jobs.begin()));
    if (group[0].steps > 0) run_alike(context, task, pass, group, most_bytes);
    jobs = jobs.subspan(group.size());
  }
}

template void train(StreamContext&, const Task&, Pass, std::span<const Job<float>>, std::size_t);
template void train(StreamContext&, const Task&, Pass, std::span<const Job<double>>, std::size_t);

}  // namespace gossamer::gpu::cuda
