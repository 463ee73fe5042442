// Bias and activation of a matrix of outputs, forward and backward.
//
// Backward, a block takes a tile of columns and a run of rows: its kColumnThreads threads are
// `tile` columns × kColumnThreads / tile row lanes. If one run would leave the GPU idle, there are
// several, and their sums are added by another kernel.
#include <algorithm>
#include <bit>

#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/vector.hpp"
#include "gpu/cuda/training/layers.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kColumnThreads = 256;
constexpr int kColumnsOwn = 4;  // values per thread, forward
/// Blocks that keep a large GPU busy.
constexpr int kColumnBlocks = 528, kMostColumnRuns = 512;

struct Tiling {
  int tile, tiles, runs;
};
Tiling tiling(int peers, int rows, int columns) {
  const int tile = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min(columns, 32))));
  const int tiles = (columns + tile - 1) / tile, lanes = kColumnThreads / tile;
  const int wanted = kColumnBlocks / std::max(1, std::min(kColumnBlocks, peers * tiles));
  return {tile, tiles, std::clamp(std::min(wanted, rows / (lanes * 8)), 1, kMostColumnRuns)};
}

template <class Real>
struct ColumnArguments {
  Batch<Real> batch;
  Columns columns;
  FastDivide by_columns;
  int tile = 0, run = 0;  ///< run: rows
};

template <class Real>
__global__ void __launch_bounds__(kColumnThreads) columns_kernel(ColumnArguments<Real> arguments) {
  const Columns& c = arguments.columns;
  Real* y = arguments.batch.at(blockIdx.z, c.output);
  const Real* bias = arguments.batch.parameters(blockIdx.z) + c.bias;
  const int values = c.rows * c.columns;
  const int first =
      static_cast<int>(blockIdx.x) * kColumnThreads * kColumnsOwn + static_cast<int>(threadIdx.x);
#pragma unroll
  for (int v = 0; v < kColumnsOwn; ++v) {
    const int i = first + v * kColumnThreads;
    if (i >= values) return;
    int row = i;
    const int column = arguments.by_columns.split(row);
    y[i] = activated(c.activation, c.bias == kNowhere ? y[i] : y[i] + bias[column]);
  }
}

template <class Real>
__global__ void __launch_bounds__(kColumnThreads)
    column_gradients_kernel(ColumnArguments<Real> arguments) {
  GOSSAMER_SHARED(Real, shared, [kColumnThreads]);
  const Columns& c = arguments.columns;
  const int thread = static_cast<int>(threadIdx.x), tile = arguments.tile,
            lanes = kColumnThreads / tile;
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

constexpr int kSumTile = 32, kSumLanes = kColumnThreads / kSumTile;

/// A block takes kSumTile columns of the matrix of partial sums, and each of its kSumLanes lanes
/// every kSumLanes-th row.
template <class Real>
__global__ void __launch_bounds__(kColumnThreads) sum_kernel(Batch<Real> batch, PartialSums sums) {
  GOSSAMER_SHARED(Real, shared, [kColumnThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.x) * kSumTile + thread % kSumTile;
  Real sum = 0;
  if (i < sums.values) {
    const Real* partial = batch.at(blockIdx.z, sums.from) + i;
#pragma unroll 8
    for (int s = thread / kSumTile; s < sums.count; s += kSumLanes)
      sum += partial[static_cast<std::size_t>(s) * sums.values];
  }
  shared[thread] = sum;
  __syncthreads();
  if (thread >= kSumTile || i >= sums.values) return;
#pragma unroll
  for (int lane = 1; lane < kSumLanes; ++lane) sum += shared[thread + lane * kSumTile];
  batch.gradient(blockIdx.z)[sums.to + i] = sum;
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
  launch(columns_kernel<Real>,
         dim3(static_cast<unsigned>(pieces_of(values, kColumnThreads * kColumnsOwn)), 1,
              static_cast<unsigned>(batch.peers)),
         kColumnThreads, stream, arguments);
}

template <class Real>
void activation_and_bias_backward(cudaStream_t stream, const Batch<Real>& batch, const Columns& c) {
  if (c.bias == kNowhere && c.activation == Activation::none) return;
  const Tiling t = tiling(batch.peers, c.rows, c.columns);
  const ColumnArguments<Real> arguments{batch, c, FastDivide(c.columns), t.tile,
                                        (c.rows + t.runs - 1) / t.runs};
  const auto peers = static_cast<unsigned>(batch.peers);
  launch(column_gradients_kernel<Real>,
         dim3(static_cast<unsigned>(t.tiles), static_cast<unsigned>(t.runs), peers), kColumnThreads,
         stream, arguments);
  if (c.bias != kNowhere && t.runs > 1)
    add_partial_sums(stream, batch,
                     {.from = c.extra, .to = c.bias, .values = c.columns, .count = t.runs});
}

template <class Real>
void add_partial_sums(cudaStream_t stream, const Batch<Real>& batch, const PartialSums& sums) {
  launch(sum_kernel<Real>,
         dim3(static_cast<unsigned>(pieces_of(static_cast<std::size_t>(sums.values), kSumTile)), 1,
              static_cast<unsigned>(batch.peers)),
         kColumnThreads, stream, batch, sums);
}

#define GOSSAMER_COLUMNS(Real)                                                                  \
  template void add_bias_and_activate(cudaStream_t, const Batch<Real>&, const Columns&);        \
  template void activation_and_bias_backward(cudaStream_t, const Batch<Real>&, const Columns&); \
  template void add_partial_sums(cudaStream_t, const Batch<Real>&, const PartialSums&);
GOSSAMER_COLUMNS(float)
GOSSAMER_COLUMNS(double)

}  // namespace gossamer::gpu::cuda
