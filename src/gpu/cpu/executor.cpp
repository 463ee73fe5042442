#include "gpu/cpu/executor.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/philox.hpp"
#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {
namespace {

/// gather() of images that are seen in views.
template <class Real>
void gather_views(const Task& task, const std::uint32_t* samples, int batch, Real* to) {
  const Program& program = *task.program;
  const std::size_t size = program.features();
  for (int i = 0; i < batch; ++i, to += size) {
    const float* from = task.tables[0].features + ImageViews::number(samples[i]) * size;
    for (int p = 0; p < program.pixels; ++p) {
      const int source = task.views.source(samples[i], p);
      for (int c = 0; c < program.channels; ++c)
        to[p * program.channels + c] =
            source < 0 ? Real{0} : static_cast<Real>(from[c * program.pixels + source]);
    }
  }
}

/// Copies the batch's samples to the workspace's start, channels last.
template <class Real>
void gather(const Task& task, const std::uint32_t* samples, int batch, Real* to) {
  if (task.views.on()) return gather_views(task, samples, batch, to);
  const Program& program = *task.program;
  const float* features = task.tables[0].features;
  const std::size_t size = program.features();
  for (int i = 0; i < batch; ++i, to += size) {
    const float* from = features + samples[i] * size;
    if (program.channels == 1) {
      std::copy(from, from + size, to);
      continue;
    }
    for (int c = 0; c < program.channels; ++c)
      for (int p = 0; p < program.pixels; ++p)
        to[p * program.channels + c] = static_cast<Real>(from[c * program.pixels + p]);
  }
}

template <class Real>
void loss(const Task& task, const std::uint32_t* samples, int batch, Real share, Real* workspace,
          bool with_gradient, LossSums& sums) {
  const Program& program = *task.program;
  std::vector<std::uint32_t> numbers;
  if (task.views.on()) {
    for (int i = 0; i < batch; ++i) numbers.push_back(ImageViews::number(samples[i]));
    samples = numbers.data();
  }
  const LayerOperation& last = program.layers.back();
  const Real* outputs = workspace + last.output;
  Real* gradient = with_gradient ? workspace + last.output_gradient() : nullptr;
  if (program.loss == Loss::squared_error)
    squared_error<Real>(outputs, batch, task.tables[0].targets, samples, share, gradient, sums);
  else
    softmax_cross_entropy<Real>(outputs, batch, program.outputs, task.tables[0].labels, samples,
                                share, gradient, sums);
}

/// What a sample's gradient is multiplied by: the batch's loss is a mean.
template <class Real>
Real share_of(double weight, int batch) {
  return static_cast<Real>(weight) / static_cast<Real>(batch);
}

template <class Real>
void add_noise(const GradientNoise& noise, std::uint32_t peer, std::uint64_t step, Real* gradient,
               std::size_t length) {
  RandomStream stream(noise.seed, peer, Purpose::gradient_noise, step);
  for (std::size_t i = 0; i < length; ++i)
    gradient[i] += static_cast<Real>(noise.deviation * stream.next_normal());
}

}  // namespace

template <class Real>
void forward(const LayerOperation& layer, int batch, const Real* parameters, Real* workspace) {
  const Operands<Real> at(layer, workspace);
  const int samples = batch * layer.positions;
  std::visit([&](const auto& operation) { forward(operation, samples, parameters, at); },
             layer.operation);
}

template <class Real>
void backward(const LayerOperation& layer, int batch, const Real* parameters, Real* gradient,
              Real* workspace, bool accumulate, WantedGradients wanted) {
  if (layer.output_gradients.empty()) return;
  const Operands<Real> at(layer, workspace, accumulate, wanted);
  const std::size_t values = size(batch) * layer.output_values;
  for (std::size_t k = 1; wanted.is_first && k < layer.output_gradients.size(); ++k)
    kernels<Real>().axpy(1, workspace + layer.output_gradients[k], at.dy, values);
  const int samples = batch * layer.positions;
  if (at.goes_on && wanted.input)
    std::copy_n(workspace + layer.inputs[0].begun_gradient, size(batch) * layer.inputs[0].values,
                at.dx);
  std::visit([&](const auto& operation) { backward(operation, samples, parameters, gradient, at); },
             layer.operation);
}

template void forward(const LayerOperation&, int, const float*, float*);
template void forward(const LayerOperation&, int, const double*, double*);
template void backward(const LayerOperation&, int, const float*, float*, float*, bool,
                       WantedGradients);
template void backward(const LayerOperation&, int, const double*, double*, double*, bool,
                       WantedGradients);

template <class Real>
void run_job(const Task& task, const Job<Real>& job, Pass pass, Real* workspace) {
  const Program& program = *task.program;
  GOSSAMER_CHECK(job.batch >= 1 && job.batch <= program.batch, "a job's batch fits its program");
  for (int s = 0; s < job.steps; ++s) {
    const std::uint32_t* samples =
        job.samples + static_cast<std::size_t>(s) * static_cast<std::size_t>(job.batch);
    gather(task, samples, job.batch, workspace);
    for (const LayerOperation& layer : program.layers)
      forward<Real>(layer, job.batch, job.parameters, workspace);
    LossSums sums;
    loss(task, samples, job.batch, share_of<Real>(job.weight, job.batch), workspace,
         pass != Pass::evaluate, sums);
    *job.loss += sums.loss / job.batch;
    if (job.hits != nullptr) *job.hits += sums.hits;
    if (pass == Pass::evaluate) continue;
    for (auto layer = program.layers.rbegin(); layer != program.layers.rend(); ++layer)
      backward<Real>(*layer, job.batch, job.parameters, job.gradient, workspace);
    const std::uint64_t step = job.first_step + static_cast<std::uint64_t>(s);
    if (task.noise.deviation > 0)
      add_noise(task.noise, job.peer, step, job.gradient, program.parameters);
    if (pass == Pass::step)
      kernels<Real>().update(update_constants<Real>(task.rule, job.rates[s], step), job.parameters,
                             job.state, job.gradient, program.parameters);
  }
}

namespace {

template <class Real>
void run_part_backward(const Program& program, const PartJob<Real>& job, PartPass pass) {
  const bool is_second =
      pass == PartPass::backward_of_input || pass == PartPass::backward_of_parameters;
  const WantedGradients wanted{
      .parameters =
          pass != PartPass::backward_but_parameters && pass != PartPass::backward_of_input,
      .input = pass != PartPass::backward_but_input && pass != PartPass::backward_of_parameters,
      .is_first = !is_second};
  for (std::size_t l = is_second ? 1 : program.layers.size(); l-- > 0;)
    backward<Real>(program.layers[l], job.batch, job.parameters, job.gradient, job.workspace,
                   !job.first, l == 0 ? wanted : WantedGradients{});
}

}  // namespace

template <class Real>
void run_part(const Task& task, const PartJob<Real>& job, PartPass pass) {
  const Program& program = *task.program;
  GOSSAMER_CHECK(job.batch >= 1 && job.batch <= program.batch, "a microbatch fits its program");
  if (pass != PartPass::forward) return run_part_backward(program, job, pass);
  if (program.takes_samples) gather(task, job.samples, job.batch, job.workspace);
  for (const LayerOperation& layer : program.layers)
    forward<Real>(layer, job.batch, job.parameters, job.workspace);
  if (!program.has_loss) return;
  LossSums sums{.loss = job.first ? 0 : *job.loss_sum};
  loss(task, job.samples, job.batch, share_of<Real>(job.weight, job.whole_batch), job.workspace,
       true, sums);
  *job.loss_sum = sums.loss;
  if (job.last) *job.loss += sums.loss / job.whole_batch;
  if (job.hits != nullptr) *job.hits += sums.hits;
}

template void run_part(const Task&, const PartJob<float>&, PartPass);
template void run_part(const Task&, const PartJob<double>&, PartPass);
template void run_job(const Task&, const Job<float>&, Pass, float*);
template void run_job(const Task&, const Job<double>&, Pass, double*);

}  // namespace gossamer::gpu
