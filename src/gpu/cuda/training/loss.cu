// Losses: per batch the mean in double, the hits, and the weighted gradient of the mean in the
// outputs, in one pass. A thread takes a sample; long batches are cut into pieces whose sums are
// added in order.
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/vector.hpp"
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kLossThreads = 256;
constexpr int kLossPiece = 2 * kLossThreads;  // samples per block

template <class Real>
struct LossArguments {
  Batch<Real> batch;
  LossCall what;
  StepInputs<Real> inputs;
  CallInputs* call;
};

struct SampleLoss {
  double loss;
  int hit;
};

/// With p = softmax(z): ℓ = −log p_label = log Σ e^{z − max} − (z_label − max), ∂ℓ/∂z = p −
/// onehot(label). Of equal outputs the first counts; a NaN among them makes the loss NaN, and is no
/// hit. `bias` may be null, as may `gradient`.
template <class Real>
__device__ SampleLoss softmax_cross_entropy(const Real* outputs, const Real* bias, int classes,
                                            int label, Real share, Real* gradient) {
  const auto z = [&](int c) { return bias == nullptr ? outputs[c] : outputs[c] + bias[c]; };
  int best = 0;
  Real most = z(0);
  for (int c = 1; c < classes; ++c) {
    const Real here = z(c);
    if (here > most) most = here, best = c;
  }
  Real sum = 0;
  for (int c = 0; c < classes; ++c) sum += exp(z(c) - most);
  const double loss =
      log(static_cast<double>(sum)) - (static_cast<double>(z(label)) - static_cast<double>(most));
  if (gradient != nullptr) {
    const Real scale = share / sum;
    for (int c = 0; c < classes; ++c)
      gradient[c] = scale * exp(z(c) - most) - (c == label ? share : Real(0));
  }
  return {loss, best == label && loss == loss ? 1 : 0};
}

/// ½ (ŷ − y)².
template <class Real>
__device__ SampleLoss squared_error(Real output, float target, Real share, Real* gradient) {
  const Real error = output - static_cast<Real>(target);
  if (gradient != nullptr) *gradient = share * error;
  return {0.5 * static_cast<double>(error) * static_cast<double>(error), 0};
}

template <class Real>
__global__ void __launch_bounds__(kLossThreads) loss_kernel(LossArguments<Real> a) {
  GOSSAMER_SHARED(double, losses, [kLossThreads]);
  GOSSAMER_SHARED(int, hits, [kLossThreads]);
  const LossCall& what = a.what;
  const unsigned peer = blockIdx.z;
  const PeerRows<Real> rows = a.batch.rows[peer];
  const Real* outputs = a.batch.at(peer, what.output);
  const Real* bias = what.bias == kNowhere ? nullptr : rows.parameters + what.bias;
  const int samples = a.batch.samples, begin = static_cast<int>(blockIdx.x) * kLossPiece,
            end = min(samples, begin + kLossPiece);
  const Real share = rows.weight / static_cast<Real>(samples);
  double loss = 0;
  int right = 0;
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += kLossThreads) {
    const std::size_t at = static_cast<std::size_t>(i) * what.outputs,
                      index = std::size_t{peer} * samples + i;
    Real* gradient =
        what.output_gradient == kNowhere ? nullptr : a.batch.at(peer, what.output_gradient + at);
    SampleLoss sample;
    if (what.loss == Loss::squared_error)
      sample = squared_error(bias == nullptr ? outputs[at] : outputs[at] + bias[0],
                             a.inputs.targets[index], share, gradient);
    else
      sample = softmax_cross_entropy(outputs + at, bias, what.outputs, a.inputs.labels[index],
                                     share, gradient);
    loss += sample.loss;
    right += sample.hit;
  }
  loss = block_sum<kLossThreads>(loss, losses);
  right = block_sum<kLossThreads>(right, hits);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0 && peer == 0) ++a.call->step;  // the gathering kernel has read it
  if (gridDim.x == 1) {
    *rows.loss += what.share * (loss / samples);
    if (rows.hits != nullptr) *rows.hits += right;
  } else {
    a.inputs.piece_losses[std::size_t{peer} * gridDim.x + blockIdx.x] = loss;
    a.inputs.piece_hits[std::size_t{peer} * gridDim.x + blockIdx.x] = right;
  }
}

/// Adds up the pieces of each peer.
template <class Real>
__global__ void __launch_bounds__(kLossThreads) add_pieces(LossArguments<Real> a, int pieces) {
  const int peer = static_cast<int>(blockIdx.x * kLossThreads + threadIdx.x);
  if (peer >= a.batch.peers) return;
  double loss = 0;
  std::int64_t hits = 0;
  for (int i = 0; i < pieces; ++i) {
    loss += a.inputs.piece_losses[static_cast<std::size_t>(peer) * pieces + i];
    hits += a.inputs.piece_hits[static_cast<std::size_t>(peer) * pieces + i];
  }
  const PeerRows<Real> rows = a.batch.rows[peer];
  *rows.loss += a.what.share * (loss / a.batch.samples);
  if (rows.hits != nullptr) *rows.hits += hits;
}

}  // namespace

int loss_pieces(int samples) { return (samples + kLossPiece - 1) / kLossPiece; }

template <class Real>
void loss(cudaStream_t stream, const Batch<Real>& batch, const LossCall& what, CallInputs* call,
          const StepInputs<Real>& inputs) {
  const LossArguments<Real> arguments{batch, what, inputs, call};
  const int pieces = loss_pieces(batch.samples);
  launch(loss_kernel<Real>,
         dim3(static_cast<unsigned>(pieces), 1, static_cast<unsigned>(batch.peers)), kLossThreads,
         stream, arguments);
  if (pieces > 1)
    launch(add_pieces<Real>,
           static_cast<unsigned>(pieces_of(static_cast<std::size_t>(batch.peers), kLossThreads)),
           kLossThreads, stream, arguments, pieces);
}

template void loss(cudaStream_t, const Batch<float>&, const LossCall&, CallInputs*,
                   const StepInputs<float>&);
template void loss(cudaStream_t, const Batch<double>&, const LossCall&, CallInputs*,
                   const StepInputs<double>&);

}  // namespace gossamer::gpu::cuda
