// The layers on the GPU: each call enqueues the kernels of one layer for all peers of a batch. No
// call waits, and all may be captured in a graph. program.hpp and the CPU's layers have the
// formulas.
#pragma once

#include "gpu/cuda/stream_context.hpp"
#include "gpu/cuda/training/batch.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

/// Addresses of a dense layer's matrices for each peer, if the distances between peers' rows are
/// not equal. Device memory, [peers] each; null if the distances are equal.
template <class Real>
struct DensePointers {
  Real* const* weights = nullptr;
  Real* const* gradient = nullptr;
  Real* const* input = nullptr;
  Real* const* output = nullptr;
  Real* const* input_gradient = nullptr;
  Real* const* output_gradient = nullptr;
  bool aligned = true;  ///< all addresses in the lists: PeerProduct::aligned
};

/// The rows of all peers at equal distances: the first peer's rows, and the distances in values.
template <class Real>
struct EvenRows {
  Real* parameters = nullptr;
  Real* gradient = nullptr;
  std::ptrdiff_t parameters_distance = 0, gradient_distance = 0;
};

/// A call of one layer.
template <class Real>
struct LayerCall {
  StreamContext& context;
  Batch<Real> batch;  ///< samples: as the layer counts them (LayerOperation::positions)
  const LayerOperation& layer;
  std::size_t extra = 0;  ///< offset of the layer's extra_values() in a workspace
  EvenRows<Real> even = {};
  DensePointers<Real> pointers = {};
  bool bias_follows = false;  ///< dense: the reader of the output adds the bias

  cudaStream_t stream() const { return context.stream(); }
};

template <class Real>
void forward(const LayerCall<Real>& call, const DenseOperation& dense);
template <class Real>
void forward(const LayerCall<Real>& call, const ConvolutionOperation& convolution);
template <class Real>
void forward(const LayerCall<Real>& call, const MaxPoolOperation& pool);
template <class Real>
void forward(const LayerCall<Real>& call, const GroupNormOperation& norm);
template <class Real>
void forward(const LayerCall<Real>& call, const AveragePoolOperation& pool);
template <class Real>
void forward(const LayerCall<Real>& call, const ElementwiseOperation& elementwise);
template <class Real>
void forward(const LayerCall<Real>& call, const SumOperation& sum);
template <class Real>
void forward(const LayerCall<Real>& call, const ConcatenateOperation& concatenate);
template <class Real>
void forward(const LayerCall<Real>& call, const EmbeddingOperation& embedding);
template <class Real>
void forward(const LayerCall<Real>& call, const AttentionOperation& attention);

template <class Real>
void backward(const LayerCall<Real>& call, const DenseOperation& dense);
template <class Real>
void backward(const LayerCall<Real>& call, const ConvolutionOperation& convolution);
template <class Real>
void backward(const LayerCall<Real>& call, const MaxPoolOperation& pool);
template <class Real>
void backward(const LayerCall<Real>& call, const GroupNormOperation& norm);
template <class Real>
void backward(const LayerCall<Real>& call, const AveragePoolOperation& pool);
template <class Real>
void backward(const LayerCall<Real>& call, const ElementwiseOperation& elementwise);
template <class Real>
void backward(const LayerCall<Real>& call, const SumOperation& sum);
template <class Real>
void backward(const LayerCall<Real>& call, const ConcatenateOperation& concatenate);
template <class Real>
void backward(const LayerCall<Real>& call, const EmbeddingOperation& embedding);
template <class Real>
void backward(const LayerCall<Real>& call, const AttentionOperation& attention);

/// output_gradients[0] ← the sum of all output gradients of the layer.
template <class Real>
void add_output_gradients(cudaStream_t stream, const Batch<Real>& batch,
                          const LayerOperation& layer);

/// Adds the gradient with which that in the layer's input goes on, if there is one.
template <class Real>
void add_begun_gradient(cudaStream_t stream, const Batch<Real>& batch, const LayerOperation& layer);

/// The grid in which each thread takes one of `values` values of each peer: x over values, z over
/// peers.
inline dim3 value_grid(std::size_t values, int peers, int threads) {
  return dim3(static_cast<unsigned>(pieces_of(values, static_cast<std::size_t>(threads))), 1,
              static_cast<unsigned>(peers));
}

/// Values that a layer needs in a peer's workspace beyond the program's.
std::size_t extra_values(const DenseOperation& dense, int peers, int samples);
std::size_t extra_values(const ConvolutionOperation& convolution, int peers, int samples);
std::size_t extra_values(const MaxPoolOperation& pool, int peers, int samples);
std::size_t extra_values(const GroupNormOperation& norm, int peers, int samples);
std::size_t extra_values(const AveragePoolOperation& pool, int peers, int samples);
std::size_t extra_values(const ElementwiseOperation& elementwise, int peers, int samples);
std::size_t extra_values(const SumOperation& sum, int peers, int samples);
std::size_t extra_values(const ConcatenateOperation& concatenate, int peers, int samples);
std::size_t extra_values(const EmbeddingOperation& embedding, int peers, int samples);
std::size_t extra_values(const AttentionOperation& attention, int peers, int samples);

/// A layer's output as a matrix, and the bias of its columns.
struct Columns {
  int rows = 0, columns = 0;
  Activation activation = Activation::none;
  std::size_t output = 0, output_gradient = 0;  ///< in the workspace
  std::size_t bias = kNowhere;                  ///< in the row, or kNowhere
  std::size_t extra = 0;                        ///< in the workspace: column_extra() values
};
/// Y ← activation(Y + bias), in place.
template <class Real>
void add_bias_and_activate(cudaStream_t stream, const Batch<Real>& batch, const Columns& columns);
/// dY ← dY ⊙ f′(Y), in place; the gradient of the bias ← Σ_rows dY.
template <class Real>
void activation_and_bias_backward(cudaStream_t stream, const Batch<Real>& batch,
                                  const Columns& columns);
/// Values of Columns::extra.
std::size_t column_extra(int peers, int rows, int columns);

/// Partial sums of a gradient: a matrix [count, values] in each workspace.
struct PartialSums {
  std::size_t from = 0;  ///< in the workspace
  std::size_t to = 0;    ///< in the gradient
  int values = 0, count = 0;
};
/// gradient[to + i] ← the sum of column i, in an order that depends on `count` alone.
template <class Real>
void add_partial_sums(cudaStream_t stream, const Batch<Real>& batch, const PartialSums& sums);

/// Copies the current step's samples to the start of each workspace, channels last, if the program
/// takes them, and writes
/// `inputs` from `call`; the optimizer's factors only if `with_rates`.
template <class Real>
void gather(cudaStream_t stream, const Batch<Real>& batch, const Task& task, const CallInputs* call,
            const StepInputs<Real>& inputs, bool with_rates);

struct LossCall {
  Loss loss = Loss::softmax_cross_entropy;
  int outputs = 0;
  std::size_t output = 0;                  ///< in the workspace
  std::size_t output_gradient = kNowhere;  ///< likewise; kNowhere: no gradient
  std::size_t bias = kNowhere;  ///< in the row, not yet added to the outputs; kNowhere: none
  double share = 1;             ///< of a batch that the samples are: multiplies the mean loss
};
/// Adds each peer's mean loss and hits to its job's, writes the gradient in the outputs, and counts
/// call->step up.
template <class Real>
void loss(cudaStream_t stream, const Batch<Real>& batch, const LossCall& what, CallInputs* call,
          const StepInputs<Real>& inputs);
/// Number of pieces in which a peer's loss is summed.
int loss_pieces(int samples);

/// Normal noise on each coordinate of each gradient.
template <class Real>
void add_noise(cudaStream_t stream, const Batch<Real>& batch, const GradientNoise& noise,
               const StepInputs<Real>& inputs, std::size_t parameters);

}  // namespace gossamer::gpu::cuda
