// Layers that compute value by value: activations and biases, sums of tensors, and channels beside
// each other. A thread per value.
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kElementThreads = 256;

template <class Real>
struct ElementArguments {
  Batch<Real> batch;
  std::size_t from = 0, to = 0;
  std::size_t bias = kNowhere;  ///< in the row, or kNowhere
  bool adds = false;            ///< the value that `to` has is added
  Activation activation = Activation::none;
  FastDivide by_values = {};  ///< values of a sample
  int total = 0;              ///< values of all samples of a peer
};

/// to ← activation((to +) from + bias).
template <class Real>
__global__ void __launch_bounds__(kElementThreads) element_kernel(ElementArguments<Real> a) {
  const int i = static_cast<int>(blockIdx.x * kElementThreads + threadIdx.x);
  if (i >= a.total) return;
  Real* to = a.batch.at(blockIdx.z, a.to);
  Real value = a.batch.at(blockIdx.z, a.from)[i];
  if (a.adds) value = to[i] + value;
  if (a.bias != kNowhere) {
    int sample = i;
    const int place = a.by_values.split(sample);
    value += a.batch.parameters(blockIdx.z)[a.bias + place];
  }
  to[i] = activated(a.activation, value);
}

template <class Real>
struct SlopeArguments {
  Batch<Real> batch;
  std::size_t input = 0, output = 0, output_gradient = 0, input_gradient = 0;
  Activation activation = Activation::none;
  int total = 0;
};

/// input_gradient ← output_gradient ⊙ f′, for gelu from the inputs, else from the outputs. Both may
/// be the same tensor.
template <class Real>
__global__ void __launch_bounds__(kElementThreads) slope_kernel(SlopeArguments<Real> a) {
  const int i = static_cast<int>(blockIdx.x * kElementThreads + threadIdx.x);
  if (i >= a.total) return;
  const Real dy = a.batch.at(blockIdx.z, a.output_gradient)[i];
  Real* dx = a.batch.at(blockIdx.z, a.input_gradient);
  if (a.activation == Activation::gelu) dx[i] = dy * gelu_slope(a.batch.at(blockIdx.z, a.input)[i]);
  else dx[i] = activation_gradient(a.activation, a.batch.at(blockIdx.z, a.output)[i], dy);
}

/// Copies between a tensor of `part` channels and the channels from `first` on of one with `all`.
template <class Real>
struct ChannelArguments {
  Batch<Real> batch;
  std::size_t narrow = 0, wide = 0;
  int first = 0, part = 0, all = 0;
  bool to_wide = false;
  FastDivide by_part = {};
  int total = 0;  ///< values of the narrow tensor, of all samples of a peer
};

template <class Real>
__global__ void __launch_bounds__(kElementThreads) channel_kernel(ChannelArguments<Real> a) {
  const int i = static_cast<int>(blockIdx.x * kElementThreads + threadIdx.x);
  if (i >= a.total) return;
  int pixel = i;
  const int channel = a.by_part.split(pixel);
  Real* narrow = a.batch.at(blockIdx.z, a.narrow) + i;
  Real* wide =
      a.batch.at(blockIdx.z, a.wide) + static_cast<std::size_t>(pixel) * a.all + a.first + channel;
  if (a.to_wide) *wide = *narrow;
  else *narrow = *wide;
}

template <class Real>
void run(cudaStream_t stream, const ElementArguments<Real>& arguments) {
  launch(
      element_kernel<Real>,
      value_grid(static_cast<std::size_t>(arguments.total), arguments.batch.peers, kElementThreads),
      kElementThreads, stream, arguments);
}

template <class Real>
void run(cudaStream_t stream, const SlopeArguments<Real>& arguments) {
  launch(
      slope_kernel<Real>,
      value_grid(static_cast<std::size_t>(arguments.total), arguments.batch.peers, kElementThreads),
      kElementThreads, stream, arguments);
}

/// Copies all inputs of the layer to its output, or the other way their gradients.
template <class Real>
void copy_channels(const LayerCall<Real>& call, const ConcatenateOperation& concatenate,
                   bool backward) {
  int all = 0;
  for (const int channels : concatenate.channels) all += channels;
  ChannelArguments<Real> arguments{
      .batch = call.batch,
      .wide = backward ? call.layer.output_gradient() : call.layer.output,
      .all = all,
      .to_wide = !backward};
  for (std::size_t k = 0; k < call.layer.inputs.size(); ++k) {
    const LayerInput& input = call.layer.inputs[k];
    arguments.part = concatenate.channels[k];
    arguments.narrow = backward ? input.gradient : input.value;
    arguments.by_part = FastDivide(arguments.part);
    arguments.total = call.batch.samples * concatenate.pixels * arguments.part;
    if (arguments.narrow != kNowhere)
      launch(
          channel_kernel<Real>,
          value_grid(static_cast<std::size_t>(arguments.total), call.batch.peers, kElementThreads),
          kElementThreads, call.stream(), arguments);
    arguments.first += arguments.part;
  }
}

Columns columns(const LayerOperation& layer, const ElementwiseOperation& elementwise, int samples,
                std::size_t extra) {
  return {.rows = samples,
          .columns = elementwise.values,
          .activation = elementwise.activation,
          .output = layer.output,
          .output_gradient = layer.output_gradient(),
          .bias = elementwise.bias,
          .extra = extra};
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const ElementwiseOperation& elementwise) {
  run<Real>(call.stream(), {.batch = call.batch,
                            .from = call.layer.input(),
                            .to = call.layer.output,
                            .bias = elementwise.bias,
                            .activation = elementwise.activation,
                            .by_values = FastDivide(elementwise.values),
                            .total = call.batch.samples * elementwise.values});
}

template <class Real>
void backward(const LayerCall<Real>& call, const ElementwiseOperation& elementwise) {
  SlopeArguments<Real> slope{.batch = call.batch,
                             .input = call.layer.input(),
                             .output = call.layer.output,
                             .output_gradient = call.layer.output_gradient(),
                             .input_gradient = call.layer.input_gradient(),
                             .activation = elementwise.activation,
                             .total = call.batch.samples * elementwise.values};
  if (elementwise.bias != kNowhere) {
    activation_and_bias_backward(call.stream(), call.batch,
                                 columns(call.layer, elementwise, call.batch.samples, call.extra));
    slope.activation = Activation::none;  // done
  }
  if (slope.input_gradient != kNowhere) run<Real>(call.stream(), slope);
}

template <class Real>
void forward(const LayerCall<Real>& call, const SumOperation& sum) {
  const std::size_t count = call.layer.inputs.size();
  for (std::size_t k = 0; k < count; ++k)
    run<Real>(call.stream(), {.batch = call.batch,
                              .from = call.layer.inputs[k].value,
                              .to = call.layer.output,
                              .adds = k > 0,
                              .activation = k + 1 == count ? sum.activation : Activation::none,
                              .total = call.batch.samples * sum.values});
}

template <class Real>
void backward(const LayerCall<Real>& call, const SumOperation& sum) {
  for (const LayerInput& input : call.layer.inputs)
    if (input.gradient != kNowhere)
      run<Real>(call.stream(), SlopeArguments<Real>{.batch = call.batch,
                                                    .output = call.layer.output,
                                                    .output_gradient = call.layer.output_gradient(),
                                                    .input_gradient = input.gradient,
                                                    .activation = sum.activation,
                                                    .total = call.batch.samples * sum.values});
}

template <class Real>
void forward(const LayerCall<Real>& call, const ConcatenateOperation& concatenate) {
  copy_channels(call, concatenate, false);
}

template <class Real>
void backward(const LayerCall<Real>& call, const ConcatenateOperation& concatenate) {
  copy_channels(call, concatenate, true);
}

template <class Real>
void add_output_gradients(cudaStream_t stream, const Batch<Real>& batch,
                          const LayerOperation& layer) {
  for (std::size_t k = 1; k < layer.output_gradients.size(); ++k)
    run<Real>(stream, ElementArguments<Real>{
                          .batch = batch,
                          .from = layer.output_gradients[k],
                          .to = layer.output_gradients[0],
                          .adds = true,
                          .total = batch.samples * static_cast<int>(layer.output_values)});
}

template <class Real>
void add_begun_gradient(cudaStream_t stream, const Batch<Real>& batch,
                        const LayerOperation& layer) {
  const LayerInput& input = layer.inputs[0];
  if (input.begun_gradient == kNowhere) return;
  run<Real>(stream,
            ElementArguments<Real>{.batch = batch,
                                   .from = input.begun_gradient,
                                   .to = input.gradient,
                                   .adds = true,
                                   .total = batch.samples * static_cast<int>(input.values)});
}

std::size_t extra_values(const ElementwiseOperation& elementwise, int peers, int samples) {
  return elementwise.bias == kNowhere ? 0 : column_extra(peers, samples, elementwise.values);
}
std::size_t extra_values(const SumOperation&, int, int) { return 0; }
std::size_t extra_values(const ConcatenateOperation&, int, int) { return 0; }

#define GOSSAMER_LAYER(Operation, Real)                            \
  template void forward(const LayerCall<Real>&, const Operation&); \
  template void backward(const LayerCall<Real>&, const Operation&);
GOSSAMER_LAYER(ElementwiseOperation, float)
GOSSAMER_LAYER(ElementwiseOperation, double)
GOSSAMER_LAYER(SumOperation, float)
GOSSAMER_LAYER(SumOperation, double)
GOSSAMER_LAYER(ConcatenateOperation, float)
GOSSAMER_LAYER(ConcatenateOperation, double)
#undef GOSSAMER_LAYER
template void add_output_gradients(cudaStream_t, const Batch<float>&, const LayerOperation&);
template void add_output_gradients(cudaStream_t, const Batch<double>&, const LayerOperation&);
template void add_begun_gradient(cudaStream_t, const Batch<float>&, const LayerOperation&);
template void add_begun_gradient(cudaStream_t, const Batch<double>&, const LayerOperation&);

}  // namespace gossamer::gpu::cuda
