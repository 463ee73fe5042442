#include "gpu/cuda/training/parts.hpp"

#include <utility>

#include "base/check.hpp"
#include "gpu/cuda/kernels/rows.hpp"
#include "gpu/cuda/training/step.hpp"

namespace gossamer::gpu::cuda {
namespace {

template <class Real>
void copy(StreamContext& context, const Real* from, Real* to, std::size_t values) {
  const CopyRequest<Real> request{from, to, values};
  enqueue(context, std::span(&request, 1));
}

/// The layers need memory behind the program's workspace, which a part's workspace lacks, so a pass
/// runs in memory of the stream. It has the gradient of one microbatch too, which layers write
/// and do not add.
template <class Real>
void run_pass(StreamContext& context, const Task& task, PartPass pass, const PartJob<Real>& job) {
  const Program& program = *task.program;
  GOSSAMER_CHECK(job.batch >= 1 && job.batch <= program.batch, "a microbatch fits its program");
  const std::size_t stride = workspace_values(program, 1, job.batch);
  Real* const workspace =
      static_cast<Real*>(context.plans().workspace((stride + program.parameters) * sizeof(Real)));
  copy<Real>(context, job.workspace, workspace, program.workspace);
  const double share = static_cast<double>(job.batch) / job.whole_batch;
  const Job<Real> own{.parameters = const_cast<Real*>(job.parameters),  // only read
                      .gradient = job.first ? job.gradient : workspace + stride,
                      .samples = job.samples,
                      .batch = job.batch,
                      .weight = job.weight * share,
                      .loss = job.loss,
                      .hits = job.hits};
  const std::span jobs(&own, 1);
  const auto plan =
      make_plan(context, PlanRequest<Real>{task, jobs, Pass::gradient, workspace, stride});
  if (pass == PartPass::forward) {
    if (program.takes_samples || program.has_loss) {
      send_call(context, *plan, jobs, Pass::gradient, 0, 1);
      gather(context.stream(), plan->batch, task, plan->call, plan->inputs, false);
    }
    run_forward(context, *plan, program);
    if (program.has_loss) run_loss(context, *plan, program, true, share);
  } else {
    run_backward(context, *plan, program);
    if (!job.first) {
      const AxpyRequest<Real> add{1, own.gradient, job.gradient, program.parameters};
      enqueue(context, std::span(&add, 1));
    }
  }
  copy<Real>(context, workspace, job.workspace, program.workspace);
  context.plans().give(std::move(plan->memory));
}

}  // namespace

template <class Real>
void train_part(StreamContext& context, const Task& task, PartPass pass,
                std::span<const PartJob<Real>> jobs) {
  // Of a backward pass in two, that one makes all gradients which the gradients to be sent need:
  // the second one, if the gradient in the input waits for another worker's, else the first one.
  if (pass == PartPass::backward_but_input || pass == PartPass::backward_of_parameters) return;
  if (pass != PartPass::forward) pass = PartPass::backward;
  for (const PartJob<Real>& job : jobs) run_pass(context, task, pass, job);
}

template void train_part(StreamContext&, const Task&, PartPass, std::span<const PartJob<float>>);
template void train_part(StreamContext&, const Task&, PartPass, std::span<const PartJob<double>>);

}  // namespace gossamer::gpu::cuda
