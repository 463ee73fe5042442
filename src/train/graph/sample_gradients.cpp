#include "train/graph/sample_gradients.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace gossamer::train {

Result<SampleGradients> SampleGradients::make(const ModelSpec& spec, const ModelContext& data,
                                              int batch) {
  if (spec.loss != Loss::softmax_cross_entropy)
    return invalid_error("model: it regresses on a target, and gradients are inverted by classes");
  GOSSAMER_TRY(CompiledModel model, CompiledModel::compile(spec, data, batch, true));
  return SampleGradients(std::move(model));
}

SampleGradients::SampleGradients(CompiledModel model)
    : model_(std::make_shared<const CompiledModel>(std::move(model))),
      device_(std::make_unique<gpu::BasicCpuDevice<double>>(1)),
      parameters_(1, model_->parameters()),
      gradient_(1, model_->parameters()),
      workspace_(1, model_->program().workspace),
      order_(static_cast<std::size_t>(batch())),
      in_samples_(order_.size() * model_->program().features()) {
  std::iota(order_.begin(), order_.end(), 0U);
}

void SampleGradients::compute(std::span<const double> parameters, std::span<const float> samples,
                              std::span<const std::int32_t> labels) {
  const gpu::Program& program = model_->program();
  GOSSAMER_CHECK(parameters.size() == program.parameters && samples.size() == in_samples_.size() &&
                     labels.size() == order_.size(),
                 "a batch has the sizes of its program");
  std::ranges::copy(parameters, parameters_.row(0).begin());
  double sum = 0;
  loss_ = 0;
  const gpu::Task task{.program = &program,
                       .tables = {{.features = samples.data(), .labels = labels.data()}}};
  const gpu::PartJob<double> job{.workspace = workspace_.data(),
                                 .parameters = parameters_.data(),
                                 .gradient = gradient_.data(),
                                 .samples = order_.data(),
                                 .batch = program.batch,
                                 .whole_batch = program.batch,
                                 .first = true,
                                 .last = true,
                                 .loss_sum = &sum,
                                 .loss = &loss_};
  for (const gpu::PartPass pass : {gpu::PartPass::forward, gpu::PartPass::backward})
    device_->train_part(task, pass, {&job, 1});

  // Each layer that takes the samples, at the workspace's start, has a buffer with their gradient.
  std::ranges::fill(in_samples_, 0.0);
  const auto channels = static_cast<std::size_t>(program.channels),
             pixels = static_cast<std::size_t>(program.pixels);
  for (const gpu::LayerOperation& layer : program.layers)
    for (const gpu::LayerInput& input : layer.inputs) {
      if (input.value != 0 || input.gradient == gpu::kNowhere) continue;
      const double* from = workspace_.data() + input.gradient;
      for (std::size_t i = 0; i < order_.size(); ++i)
        for (std::size_t p = 0; p < pixels; ++p)
          for (std::size_t c = 0; c < channels; ++c)
            in_samples_[(i * channels + c) * pixels + p] += *from++;
    }
}

}  // namespace gossamer::train
