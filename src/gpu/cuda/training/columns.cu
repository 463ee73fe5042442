// Bias and activation of a matrix of outputs, forward and backward.
//
// Backward, a block takes a tile of columns and a run of rows: its kThreads threads are `tile`
// columns × kThreads / tile row lanes. If one run would leave the GPU idle, there are several, and
// their sums are added in order.
#include <algorithm>
#include <bit>

#include "gpu/cuda/kernels/vector.hpp"
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kOwn = 4;  // values per thread, forward
/// Blocks that keep a large GPU busy.
constexpr int kBlocksWanted = 528;

struct Tiling {
  int tile, tiles, runs;
};
Tiling tiling(int peers, int rows, int columns) {
  const int tile = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min(columns, 32))));
  const int tiles = (columns + tile - 1) / tile, lanes = kThreads / tile;
  const int wanted = kBlocksWanted / std::max(1, std::min(kBlocksWanted, peers * tiles));
  return {tile, tiles, std::clamp(std::min(wanted, rows / (lanes * 8)), 1, 256)};
}

template <class Real>
struct ColumnArguments {
  Batch<Real> batch;
  Columns columns;
  FastDivide by_columns;
  int tile = 0, run = 0;  ///< run: rows
};

template <class Real>
__global__ void __launch_bounds__(kThreads) forward_kernel(ColumnArguments<Real> arguments) {
  const Columns& c = arguments.columns;
  Real* y = arguments.batch.at(blockIdx.z, c.output);
  const Real* bias = arguments.batch.parameters(blockIdx.z) + c.bias;
  const int values = c.rows * c.columns;
  const int first = static_cast<int>(blockIdx.x) * kThreads * kOwn + static_cast<int>(threadIdx.x);
#pragma unroll
  for (int v = 0; v < kOwn; ++v) {
    const int i = first + v * kThreads;
    if (i >= values) return;
    int row = i;
    const int column = arguments.by_columns.split(row);
    y[i] = activated(c.activation, c.bias == kNowhere ? y[i] : y[i] + bias[column]);
  }
}

template <class Real>
__global__ void __launch_bounds__(kThreads) backward_kernel(ColumnArguments<Real> arguments) {
  __shared__ Real shared[kThreads];
  const Columns& c = arguments.columns;
  const int thread = static_cast<int>(threadIdx.x), tile = arguments.tile, lanes = kThreads / tile;
  const int column = static_cast<int>(blockIdx.x) * tile + thread % tile;
  const int begin = static_cast<int>(blockIdx.y) * arguments.run,
            end = min(c.rows, begin + arguments.run);
  const Real* y = arguments.batch.at(blockIdx.z, c.output);
  Real* dy = arguments.batch.at(blockIdx.z, c.output_gradient);
  Real sum = 0;
  if (column < c.columns) {
#pragma unroll 4
    for (int row = begin + thread / tile; row < end; row += lanes) {
      const std::size_t i = static_cast<std::size_t>(row) * c.columns + column;
      Real d = dy[i];
      if (c.activation != Activation::none) {
        d = activation_gradient(c.activation, y[i], d);
        dy[i] = d;
      }
      sum += d;
    }
  }
  if (c.bias == kNowhere) return;
  shared[thread] = sum;
  __syncthreads();
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (thread < half * tile) shared[thread] += shared[thread + half * tile];
    __syncthreads();
  }
  if (thread >= tile || column >= c.columns) return;
  if (gridDim.y == 1) arguments.batch.gradient(blockIdx.z)[c.bias + column] = shared[thread];
  else
    arguments.batch.at(blockIdx.z,
                       c.extra)[static_cast<std::size_t>(blockIdx.y) * c.columns + column] =
        shared[thread];
}

/// The gradient of the bias: the sum over the runs.
template <class Real>
__global__ void __launch_bounds__(kThreads) add_runs(ColumnArguments<Real> arguments, int runs) {
  const Columns& c = arguments.columns;
  const int column = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (column >= c.columns) return;
  const Real* sums = arguments.batch.at(blockIdx.z, c.extra) + column;
  Real sum = 0;
  for (int r = 0; r < runs; ++r) sum += sums[static_cast<std::size_t>(r) * c.columns];
  arguments.batch.gradient(blockIdx.z)[c.bias + column] = sum;
}

}  // namespace

std::size_t column_extra(int peers, int rows, int columns) {
  const int runs = tiling(peers, rows, columns).runs;
  return runs == 1 ? 0 : static_cast<std::size_t>(runs) * static_cast<std::size_t>(columns);
}

template <class Real>
void add_bias_and_activate(cudaStream_t stream, const Batch<Real>& batch, const Columns& c) {
  if (c.bias == kNowhere && c.activation == Activation::none) return;
  const auto values = static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.columns);
  const ColumnArguments<Real> arguments{batch, c, FastDivide(c.columns), 0, 0};
  launch(forward_kernel<Real>,
         dim3(static_cast<unsigned>(pieces_of(values, kThreads * kOwn)), 1,
              static_cast<unsigned>(batch.peers)),
         kThreads, stream, arguments);
}

template <class Real>
void activation_and_bias_backward(cudaStream_t stream, const Batch<Real>& batch, const Columns& c) {
  if (c.bias == kNowhere && c.activation == Activation::none) return;
  const Tiling t = tiling(batch.peers, c.rows, c.columns);
  const ColumnArguments<Real> arguments{batch, c, FastDivide(c.columns), t.tile,
                                        (c.rows + t.runs - 1) / t.runs};
  const auto peers = static_cast<unsigned>(batch.peers);
  launch(backward_kernel<Real>,
         dim3(static_cast<unsigned>(t.tiles), static_cast<unsigned>(t.runs), peers), kThreads,
         stream, arguments);
  if (c.bias != kNowhere && t.runs > 1)
    launch(add_runs<Real>,
           dim3(static_cast<unsigned>(pieces_of(static_cast<std::size_t>(c.columns), kThreads)), 1,
                peers),
           kThreads, stream, arguments, t.runs);
}

#define GOSSAMER_COLUMNS(Real)                                                           \
  template void add_bias_and_activate(cudaStream_t, const Batch<Real>&, const Columns&); \
  template void activation_and_bias_backward(cudaStream_t, const Batch<Real>&, const Columns&);
GOSSAMER_COLUMNS(float)
GOSSAMER_COLUMNS(double)

}  // namespace gossamer::gpu::cuda
