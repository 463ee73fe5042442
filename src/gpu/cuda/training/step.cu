#include "gpu/cuda/training/step.hpp"

#include <algorithm>
#include <cstring>
#include <variant>

namespace gossamer::gpu::cuda {
namespace {

/// Offset of the last layer's bias if the loss follows it directly: then the loss adds the bias.
std::size_t bias_for_loss(const Program& program) {
  if (!program.has_loss) return kNowhere;
  const auto* dense = std::get_if<DenseOperation>(&program.layers.back().operation);
  const bool follows = dense != nullptr && dense->activation == Activation::none &&
                       program.layers.back().positions == 1;
  return follows ? dense->bias : kNowhere;
}

template <class Real>
LayerCall<Real> layer_call(StreamContext& context, const TrainingPlan<Real>& plan,
                           const Program& program, std::size_t layer) {
  Batch<Real> batch = plan.batch;
  batch.samples *= program.layers[layer].positions;
  return {.context = context,
          .batch = batch,
          .layer = program.layers[layer],
          .extra = plan.extra,
          .even = plan.even,
          .pointers = plan.pointers[layer],
          .bias_follows = layer + 1 == program.layers.size() && bias_for_loss(program) != kNowhere};
}

}  // namespace

template <class Real>
void send_call(StreamContext& context, const TrainingPlan<Real>& plan,
               std::span<const Job<Real>> jobs, Pass pass, int first, int count) {
  const std::size_t peers = jobs.size(), steps = static_cast<std::size_t>(count);
  const auto begin = static_cast<std::size_t>(first),
             batch = static_cast<std::size_t>(jobs[0].batch);
  const std::size_t numbers_at = 256, rates_at = numbers_at + peers * sizeof(std::uint64_t),
                    samples_at = rates_at + peers * steps * sizeof(double);
  const UploadRing::Slot slot =
      context.uploads().reserve(samples_at + peers * steps * batch * sizeof(std::uint32_t));
  auto* numbers = reinterpret_cast<std::uint64_t*>(slot.host + numbers_at);
  auto* rates = reinterpret_cast<double*>(slot.host + rates_at);
  auto* samples = reinterpret_cast<std::uint32_t*>(slot.host + samples_at);
  for (std::size_t p = 0; p < peers; ++p) {
    numbers[p] = jobs[p].first_step + begin;
    if (pass == Pass::step) std::copy_n(jobs[p].rates + begin, steps, rates + p * steps);
    std::copy_n(jobs[p].samples + begin * batch, steps * batch, samples + p * steps * batch);
  }
  const CallInputs call{reinterpret_cast<const std::uint32_t*>(slot.device + samples_at),
                        reinterpret_cast<const double*>(slot.device + rates_at),
                        reinterpret_cast<const std::uint64_t*>(slot.device + numbers_at), count, 0};
  std::memcpy(slot.host, &call, sizeof call);
  context.uploads().send(slot);
  context.uploads().send({slot.host, slot.device, sizeof call}, plan.call);
}

template <class Real>
void run_forward(StreamContext& context, const TrainingPlan<Real>& plan, const Program& program) {
  for (std::size_t l = 0; l < program.layers.size(); ++l)
    std::visit(
        [&](const auto& operation) { forward(layer_call(context, plan, program, l), operation); },
        program.layers[l].operation);
}

template <class Real>
void run_loss(StreamContext& context, const TrainingPlan<Real>& plan, const Program& program,
              bool with_gradient, double share) {
  const LayerOperation& last = program.layers.back();
  loss(context.stream(), plan.batch,
       {.loss = program.loss,
        .outputs = program.outputs,
        .output = last.output,
        .output_gradient = with_gradient ? last.output_gradient() : kNowhere,
        .bias = bias_for_loss(program),
        .share = share},
       plan.call, plan.inputs);
}

template <class Real>
void run_backward(StreamContext& context, const TrainingPlan<Real>& plan, const Program& program) {
  for (std::size_t l = program.layers.size(); l-- > 0;) {
    const LayerOperation& layer = program.layers[l];
    if (layer.output_gradients.empty()) continue;
    add_output_gradients(context.stream(), plan.batch, layer);
    std::visit(
        [&](const auto& operation) { backward(layer_call(context, plan, program, l), operation); },
        layer.operation);
    add_begun_gradient(context.stream(), plan.batch, layer);
  }
}

#define GOSSAMER_STEP(Real)                                                                        \
  template void send_call(StreamContext&, const TrainingPlan<Real>&, std::span<const Job<Real>>,   \
                          Pass, int, int);                                                         \
  template void run_forward(StreamContext&, const TrainingPlan<Real>&, const Program&);            \
  template void run_loss(StreamContext&, const TrainingPlan<Real>&, const Program&, bool, double); \
  template void run_backward(StreamContext&, const TrainingPlan<Real>&, const Program&);
GOSSAMER_STEP(float)
GOSSAMER_STEP(double)

}  // namespace gossamer::gpu::cuda
