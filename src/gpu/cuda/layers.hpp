// The layers on the GPU: each call asks for the kernels of one layer, for all peers of a batch.
// All may be captured; none waits. Formulas are those of program.hpp and of the CPU's layers.
#pragma once

#include "gpu/cuda/batch.hpp"
#include "gpu/cuda/lane.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

/// Addresses of a dense layer's matrices for each peer, where the distances of the rows are not
/// equal. Device memory, [peers] each; null: the distances are equal.
template <class Real>
struct DensePointers {
  Real* const* weights = nullptr;
  Real* const* gradient = nullptr;
  Real* const* input = nullptr;
  Real* const* output = nullptr;
  Real* const* input_gradient = nullptr;
  Real* const* output_gradient = nullptr;
};

/// The rows of all peers as equally distant ones: those of the first peer, and the distances in
/// values.
template <class Real>
struct EvenRows {
  Real* parameters = nullptr;
  Real* gradient = nullptr;
  std::ptrdiff_t parameters_distance = 0, gradient_distance = 0;
};

/// A layer's call.
template <class Real>
struct LayerCall {
  Lane& lane;
  const Batch<Real>& batch;
  const LayerOperation& layer;
  std::size_t extra = 0;  ///< where a layer's own room begins in a workspace: extra_values() values
  EvenRows<Real> even = {};
  DensePointers<Real> pointers = {};
  bool bias_follows = false;  ///< dense: who reads the output adds the bias

  cudaStream_t stream() const { return lane.stream(); }
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
void backward(const LayerCall<Real>& call, const DenseOperation& dense);
template <class Real>
void backward(const LayerCall<Real>& call, const ConvolutionOperation& convolution);
template <class Real>
void backward(const LayerCall<Real>& call, const MaxPoolOperation& pool);
template <class Real>
void backward(const LayerCall<Real>& call, const GroupNormOperation& norm);

/// Values of a peer's workspace beyond the program's that a layer needs.
std::size_t extra_values(const DenseOperation& dense, int peers, int samples);
std::size_t extra_values(const ConvolutionOperation& convolution, int peers, int samples);
std::size_t extra_values(const MaxPoolOperation& pool, int peers, int samples);
std::size_t extra_values(const GroupNormOperation& norm, int peers, int samples);

/// A layer's output as a matrix, and the bias that belongs to its columns.
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
/// dY ← dY ⊙ f′(Y), in place; the bias's gradient ← Σ_rows dY.
template <class Real>
void activation_and_bias_backward(cudaStream_t stream, const Batch<Real>& batch,
                                  const Columns& columns);
std::size_t column_extra(int peers, int rows, int columns);

/// Samples of the step at work to the workspaces' begins, channels last; and `now` from `call`, the
/// optimizer's factors only where there are rates.
template <class Real>
void gather(cudaStream_t stream, const Batch<Real>& batch, const Task& task, const Call* call,
            const Now<Real>& now, bool with_rates);

struct LossCall {
  Loss loss = Loss::softmax_cross_entropy;
  int outputs = 0;
  std::size_t output = 0;                  ///< in the workspace
  std::size_t output_gradient = kNowhere;  ///< likewise; kNowhere: not asked for
  std::size_t bias = kNowhere;             ///< in the row: still to be added to the outputs
};
/// Adds each peer's mean loss and hits to where they belong, writes the gradient in the outputs,
/// and counts call->step up.
template <class Real>
void loss(cudaStream_t stream, const Batch<Real>& batch, const LossCall& what, Call* call,
          const Now<Real>& now);
/// Pieces of a peer's loss.
int loss_pieces(int samples);

/// Normal noise on each coordinate of each gradient.
template <class Real>
void add_noise(cudaStream_t stream, const Batch<Real>& batch, const GradientNoise& noise,
               const Now<Real>& now, std::size_t parameters);

}  // namespace gossamer::gpu::cuda
